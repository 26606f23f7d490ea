// The orientation of an image in its metadata. Where these are damaged there is none: the image is one
// nevertheless.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace stoker {

// Tag 274 of EXIF (EXIF 2.3: a TIFF file, as "Exif\0\0" may introduce it), whatever its number.
std::optional<int> orientation_in_exif(std::span<const uint8_t> exif);

// tiff:Orientation of XMP, which is XML, a digit as Pillow looks for it.
std::optional<int> orientation_in_xmp(std::span<const uint8_t> xmp);

// What an image means that has both, or is without one of them: EXIF goes before. 1 to 8; 1 for none.
int orientation_in(std::span<const uint8_t> exif, std::span<const uint8_t> xmp);

}  // namespace stoker
