// TensorFlow 1's bilinear resize, for output that must equal what older programs wrote.
#pragma once

#include <cstdint>

#include "core/base/pixels.h"

namespace stoker {

// Writes `out` pixels to `slot`: tf.image.resize_bilinear of RGB whose rows lie `in.width` pixels apart, its
// float32 result cut down to uint8 as a cast does. Four neighbours are mixed and all others ignored: there is
// no antialiasing. With `align_corners` the centres of the corner pixels of both images coincide; without,
// their outer corners do, and samples are taken half a pixel off. Throws kBadArgument for a side that
// is not 1 .. 2^24, which float32 coordinates count.
void resize_tf1(const uint8_t* pixels, Extent in, Extent out, bool align_corners, RgbSlot slot);

}  // namespace stoker
