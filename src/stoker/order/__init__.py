"""Which sample comes when: integer functions of (records, seed, epoch, topology), without state and without I/O."""

from stoker.order.sequence import EpochOrder, Step, Tail, Topology, steps_left, take_step

__all__ = ["EpochOrder", "Step", "Tail", "Topology", "steps_left", "take_step"]
