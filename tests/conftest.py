"""What holds for all tests."""

from hypothesis import settings

# A machine that is busy with other work makes an example slow, and says nothing about the code.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
