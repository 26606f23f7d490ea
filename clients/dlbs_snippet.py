"""The reader of DLBS's documentation: from `features =` on, its lines are those of the page, to the letter.

The page leaves `_feature_map` and what is around its lines to the reader; they follow the table of keys above them.
"""

import tensorflow.compat.v1 as tf

_feature_map = {
    "image/encoded": tf.FixedLenFeature([], tf.string),
    "image/height": tf.FixedLenFeature([], tf.int64),
    "image/width": tf.FixedLenFeature([], tf.int64),
    "image/channels": tf.FixedLenFeature([], tf.int64),
    "image/class/label": tf.FixedLenFeature([], tf.int64),
}


# fmt: off
def parse(example_serialized: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
  """Return the pixels and the class of one record."""
  features = tf.parse_single_example(example_serialized, _feature_map)
  image = tf.decode_raw(features['image/encoded'], out_type=tf.uint8)
  height = tf.cast(features['image/height'], tf.int32)
  width = tf.cast(features['image/width'], tf.int32)
  channels = tf.cast(features['image/channels'], tf.int32)
  image_shape = tf.stack([height, width, channels])
  image = tf.reshape(image, image_shape)
  label = tf.cast(features['image/class/label'], dtype=tf.int32)
  return (image, label)
