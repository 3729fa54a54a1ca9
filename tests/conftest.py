"""What holds for all tests."""

import signal

from hypothesis import settings

# A machine that is busy with other work makes an example slow, and says nothing about the code.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

# Started in the background by a shell this process ignores interrupts, and so would what tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
