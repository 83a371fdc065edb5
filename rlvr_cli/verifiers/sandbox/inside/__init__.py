"""What runs in the sandbox. Standard library only: an isolated interpreter imports this as the package `inside`.

    worker process of the pool          holds the expected values, compares
    └─ zygote                           one a worker: forks a sandbox for each record, sees no record itself
       └─ keeper                        enters the namespaces, waits
          └─ runner                     process 1 of the sandbox: runs the tests, reports; the program cannot kill it
             └─ program                 the policy's code; whatever it does is data to those above

Nobody below the worker ever holds an expected value, except in assertions that have to run in process.
"""
