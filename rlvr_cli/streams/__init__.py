"""Where records enter and leave: JSONL, Parquet, atomic outputs, resume, rejects, groups."""
