"""Disk and clock faults for one process, from a small C library that is loaded into it (LD_PRELOAD).

shim = Shim(tmp_path / "shim")
process = subprocess.Popen(command, env={**os.environ, **shim.environment})
full = shim.fail(Operation.WRITE | Operation.CREATE, errno.ENOSPC, data_dir)
full.heal()
"""

from tests.jepsen.shim.control import ALL_WRITES, Operation, Rule, Shim
from tests.jepsen.shim.power import PowerLoss, lose_power

__all__ = ["ALL_WRITES", "Operation", "PowerLoss", "Rule", "Shim", "lose_power"]
