"""Settings for all tests."""

import signal

from hypothesis import settings

# An example may be slow because the machine is busy: that is not an error of the code.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

# If a shell started this process in the background, this process ignores interrupts, and so do the processes
# that it starts. Tests interrupt such processes, so interrupts are switched on here.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
