"""``make bench``: this operator beside other webhooks, on one real API server, in one run.

The modules, each importing only those above it:

    figures    medians with their spread, and fitted exponents; pure
    pods       the pods of every size
    processes  what the kernel says of a program: memory, processor time
    programs   the Go programs and the virtual environments, built once into the cache folder
    stage      the control plane with namespaces, certificates and webhook configurations
    peers      how each webhook is started, and where it answers
    load       how much is measured, and the load generators
    measure    one function for each kind of measurement
    profiling  where the time of an admission goes
    bars       what was promised, and whether it is so; pure
    chart      the figures as SVG; pure
    report     the figures as Markdown; pure
    capacity   what they mean for a large cluster; pure
    __main__   the order of it all
"""
