// The orientation of an image in its metadata. Damaged metadata have none, since the image itself may be
// intact.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace stoker {

// Tag 274 of EXIF (EXIF 2.3: a TIFF file, as "Exif\0\0" may introduce it), whatever its number.
std::optional<int> orientation_in_exif(std::span<const uint8_t> exif);

// tiff:Orientation of XMP, which is XML, a digit as Pillow looks for it.
std::optional<int> orientation_in_xmp(std::span<const uint8_t> xmp);

// The orientation by both, either of which may be missing: EXIF takes precedence. 1 to 8; 1 for none.
int orientation_in(std::span<const uint8_t> exif, std::span<const uint8_t> xmp);

}  // namespace stoker
