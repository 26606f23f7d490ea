// Pixels that are stored as they are: the regions of a raw image that a transform needs.
#pragma once

#include <cstdint>

#include "core/base/pixels.h"
#include "core/base/scratch_bytes.h"
#include "core/base/stored_image.h"

namespace stoker {

// `image` is a raw one, and `region` lies inside it.

// The region as RGBX in `scratch`.
RgbxView to_rgbx(const StoredImage& image, Rect region, ScratchBytes& scratch);

// The region as RGB rows, mirrored if `flip`.
void copy_rgb(const StoredImage& image, Rect region, bool flip, RgbSlot slot);

}  // namespace stoker
