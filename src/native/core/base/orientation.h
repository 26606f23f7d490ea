// How an image is turned to be seen upright, by its EXIF orientation (EXIF 2.3, tag 274).
#pragma once

#include <cstdint>

#include "core/base/pixels.h"

namespace stoker {

struct ObjectBox;

// One of the eight: what is stored is mirrored, turned upside down, and its rows become columns, in this
// order.
class Orientation {
 public:
  constexpr Orientation() = default;
  // Of a number that is not 2 .. 8: none of the three.
  constexpr explicit Orientation(int exif)
      : mirrored_(exif == 2 || exif == 3 || exif == 7 || exif == 8),
        upside_down_(exif == 3 || exif == 4 || exif == 6 || exif == 7),
        swaps_(exif >= 5 && exif <= 8) {}

  bool turns() const { return mirrored_ || upside_down_ || swaps_; }

  // The size of the upright image, and where a box of the stored one lies in it.
  Extent upright(Extent stored) const;
  ObjectBox upright(const ObjectBox& stored) const;

  // The region of a stored image of that size that becomes `upright`, which must lie in the upright one.
  Rect stored(Rect upright, Extent image) const;

  // Writes some rows of a stored image, or of a part of one, of that size, to where they are in the upright
  // one, whose rows have no gaps.
  void turn(const RgbxRows& rows, Extent stored, uint8_t* upright) const;

  // The largest of 8, 4, 2 and 1 by which a stored image of that size may be shrunk, so that a last column or
  // row that becomes the first one is as wide as the others.
  int32_t most_shrink(Extent stored) const;

 private:
  bool mirrored_ = false;
  bool upside_down_ = false;
  bool swaps_ = false;
};

}  // namespace stoker
