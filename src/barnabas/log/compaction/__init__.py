"""Compaction keeps the newest record of each key. How it works, by module:

choice.py     which log needs it most
cleaner.py    the broker's side: makes jobs, installs results; driven by broker/cleaning.py
job.py        a job and its result, as JSON
worker.py     the process that does the jobs
source.py, rewriting.py, output.py   run in that process: read segments, decide what stays, write new ones
swapping.py   replaces old segments by new ones, safe from crashes"""
