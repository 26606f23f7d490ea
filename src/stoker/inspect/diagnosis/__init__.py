"""What slows down a training loop or the reading of a dataset: figures, one verdict from them, and a remedy.

::

    loop      watches a training loop: `stoker.doctor`
    dataset   measures a dataset alone, and tries remedies: ``stoker doctor``
    system    what the system says of threads, CPUs, memory and files
    decision  from these figures to a verdict
"""
