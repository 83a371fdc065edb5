"""Runs programs that a policy wrote, which may do anything, and tells what they computed.

What is feared: a program that is wrong in an innocent way (endless loops, memory, output, forks), and one that training
has taught to be rewarded without being right. Not feared: an attacker with an unknown hole in the Linux kernel.

What is protected
- The machine: a program runs in user, mount, pid, network, ipc and uts namespaces of its own, made by bubblewrap where
  there is one, else by system calls (inside/namespaces.py), without capabilities, behind a filter of system calls.
  It sees an interpreter, the standard library and system libraries, read-only; no /proc, /sys or /tmp, no shell, no
  network, no environment, no site-packages. It may write to its working directory and /dev/shm, both in memory, of
  limited size, gone afterwards. Python's own parallelism works within the limit of processes.
- Its time, memory, output and processes: hard limits of CPU time, address space and file size for each process; of
  processes (threads too) by control group, or by the user namespace's own count; of memory altogether by control group,
  else by watching. When its time is over, or any process above it dies, its pid namespace is killed with all in it.
- The verdict: what is expected never enters the sandbox. Values come out as data of built-in types (inside/values.py),
  are decoded and compared by the worker (compare.py); an object that equals everything is no data. Printed text is
  compared there too. A test has passed when its values are right, not when a program ended well: exit codes, patched
  builtins and printed verdicts have no say. Each test's answer has to come with a secret that is made for it.
- Other records: a sandbox is made for each and nothing of it is used again.

What is not
- Assertions that cannot be split (assertions.py) run in the program's process, and the detail counts them as
  `in_process`: their text, with what is expected, is in its memory, and a program written against this very sandbox
  could find it there, or the secret that says that an assertion held. Objects that equal everything do not pass.
- Nothing hides the inputs of a problem's tests from each other, nor the interpreter's version and the time of day.
- With --unsafe-no-sandbox only the limits remain: a program is bounded, but sees and may change what its user can.
- Without control groups the memory of all processes together is looked at 20 times a second: it may overshoot, and what
  processes share since a fork counts for each of them. Files in memory count by their own limit only.
- Bubblewrap sets no limit to how many empty files there are.

`prepare` finds out what isolation there is by trying to break it, and refuses where there is none.
"""
