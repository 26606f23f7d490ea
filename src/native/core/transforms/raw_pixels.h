// Pixels that are stored as they are: the regions of a raw image that a transform needs.
#pragma once

#include <cstdint>

#include "core/base/pixels.h"
#include "core/base/scratch_bytes.h"
#include "core/base/stored_image.h"

namespace stoker {

// `image` is a raw one, and `region` lies inside it.

// The region in `scratch`, as `mode` lies in RGBX. `image` is of that mode or RGB, of which there is no I;16:
// that throws kBadImage; another mode throws kBadArgument.
RgbxView to_rgbx(const StoredImage& image, Rect region, PixelMode mode, ScratchBytes& scratch);

// The region of an image of RGB as such rows, mirrored if `flip`.
void copy_rgb(const StoredImage& image, Rect region, bool flip, RgbSlot slot);

}  // namespace stoker
