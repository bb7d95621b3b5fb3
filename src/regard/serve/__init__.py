"""Models as a service: a process for each model, batches of what waits, limits before anything is allocated.

The parent speaks HTTP and never loads a model; a worker computes and never sees a network. Between them go
frames of JSON. A worker that dies takes nobody along: it is started again, and its texts are tried once more.
"""
