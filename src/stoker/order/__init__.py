"""Which sample comes when: integer functions of (records, seed, epoch, topology), without state and without I/O."""

from stoker.order.block_shuffle import BlockShuffle
from stoker.order.quality import ShuffleQuality, shuffle_quality
from stoker.order.sequence import EpochOrder, Step, Tail, Topology, steps_left, take_step

__all__ = [
    "BlockShuffle",
    "EpochOrder",
    "ShuffleQuality",
    "Step",
    "Tail",
    "Topology",
    "shuffle_quality",
    "steps_left",
    "take_step",
]
