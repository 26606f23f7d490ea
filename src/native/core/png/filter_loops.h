// The row filters, written once and compiled for each instruction set by the file that includes it, with the
// vector extension that GCC and Clang have in common. Everything is in an unnamed namespace: code for one set
// must never be linked into another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/png/filter_kernels.h"

namespace stoker {
namespace {

constexpr size_t kVectorBytes = 16;
using Bytes [[gnu::vector_size(kVectorBytes)]] = uint8_t;
constexpr size_t kSkew = 2;  // pixels that a row is behind the one above it

inline Bytes load(const uint8_t* from) {
  Bytes value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

inline void store(Bytes value, uint8_t* to) {
  std::memcpy(to, &value, sizeof value);
}

// Bytes `at...` of both: those of `a` are 0 to 15, those of `b` 16 to 31.
template <size_t... at>
inline Bytes pick(Bytes a, Bytes b, std::index_sequence<at...>) {
#ifdef __clang__
  return __builtin_shufflevector(a, b, static_cast<int>(at)...);
#else
  return __builtin_shuffle(a, b, Bytes{static_cast<uint8_t>(at)...});
#endif
}

// Which of 32 bytes goes to byte `i`, for lanes of `kLane` bytes.
template <size_t kLane>
constexpr size_t first_halves(size_t i) {  // the lanes of the lower halves of both, in turn
  return i / kLane % 2 * kVectorBytes + i / kLane / 2 * kLane + i % kLane;
}
template <size_t kLane>
constexpr size_t second_halves(size_t i) {
  return first_halves<kLane>(i) + kVectorBytes / 2;
}
template <size_t kLane>
constexpr size_t next_lane(size_t i) {  // the first lane of `b`, and all but the last of `a`
  return i < kLane ? kVectorBytes + i : i - kLane;
}
template <size_t kPixel, size_t kLane>
constexpr size_t spread(size_t i) {  // pixels that lie end to end, each to a lane
  return i % kLane < kPixel ? i / kLane * kPixel + i % kLane : kVectorBytes - 1;
}
template <size_t kPixel, size_t kLane>
constexpr size_t close_up(size_t i) {  // and back
  return i / kPixel < kVectorBytes / kLane ? i / kPixel * kLane + i % kPixel : kVectorBytes - 1;
}

using Indices = std::make_index_sequence<kVectorBytes>;
template <typename Where, size_t... i>
constexpr auto mapped(Where, std::index_sequence<i...>) {
  return std::index_sequence<Where::of(i)...>();
}
template <size_t (*where)(size_t)>
struct At {
  static constexpr size_t of(size_t i) { return where(i); }
};
template <size_t (*where)(size_t)>
inline Bytes pick(Bytes a, Bytes b) {
  return pick(a, b, decltype(mapped(At<where>(), Indices()))());
}

inline Bytes smaller(Bytes a, Bytes b) {
  return a < b ? a : b;
}

inline Bytes larger(Bytes a, Bytes b) {
  return a > b ? a : b;
}

// Of a, b and c the one that is nearest to a + b - c, in this order where they are equally near. That is c
// where it lies between the others and within the middle third, and otherwise the one further from c.
inline Bytes paeth(Bytes a, Bytes b, Bytes c) {
  const Bytes low = smaller(a, b), high = larger(a, b);
  const Bytes above = larger(high, c) - c, below = c - smaller(low, c);
  // Twice them. Where one is 128 or more, the other is too small for the cut to matter.
  const Bytes cut = Bytes{} + 127;
  const Bytes twice_above = smaller(above, cut) + smaller(above, cut);
  const Bytes twice_below = smaller(below, cut) + smaller(below, cut);
  const Bytes c_or_low = twice_above <= below ? low : c;
  return twice_below <= above ? high : c_or_low;
}

inline Bytes average(Bytes a, Bytes b) {
  return (a & b) + (((a ^ b) & 0xfe) >> 1);
}

// Which neighbours the filters of the rows look at; of each lane all bits, or none.
struct Looks {
  Bytes left = {}, up = {}, corner = {}, average = {};
};

template <size_t kLane>
Looks looks_of(const FilteredRows& rows) {
  uint8_t left[kVectorBytes] = {}, up[kVectorBytes] = {}, corner[kVectorBytes] = {},
          average[kVectorBytes] = {};
  for (size_t row = 0; row < rows.count; ++row) {
    const uint8_t filter = rows.data[row * rows.stride];
    for (size_t i = row * kLane; i < (row + 1) * kLane; ++i) {
      left[i] = filter == 1 || filter == 4 ? 0xff : 0;
      up[i] = filter == 2 || filter == 4 ? 0xff : 0;
      corner[i] = filter == 4 ? 0xff : 0;
      average[i] = filter == 3 ? 0xff : 0;
    }
  }
  return {load(left), load(up), load(corner), load(average)};
}

// Of `kLanes` vectors, each of as many lanes, lane i of vector k becomes lane k of vector i.
template <size_t kLane>
inline void transpose(Bytes (&v)[kVectorBytes / kLane]) {
  constexpr size_t kLanes = kVectorBytes / kLane;
  for (size_t done = 1; done < kLanes; done *= 2) {
    Bytes turned[kLanes];
    for (size_t i = 0; i < kLanes / 2; ++i) {
      turned[2 * i] = pick<first_halves<kLane>>(v[i], v[i + kLanes / 2]);
      turned[2 * i + 1] = pick<second_halves<kLane>>(v[i], v[i + kLanes / 2]);
    }
    for (size_t i = 0; i < kLanes; ++i) v[i] = turned[i];
  }
}

template <size_t kPixel, size_t kLane>
class Wave {
 public:
  static constexpr size_t kRows = kVectorBytes / kLane;

  Wave(const FilteredRows& rows, const uint8_t* above, uint8_t* out, size_t stride)
      : looks_(looks_of<kLane>(rows)), above_(above), out_(out), stride_(stride), count_(rows.count) {
    for (size_t i = 0; i < kRows; ++i) from_[i] = rows.data + (i < rows.count ? i : 0) * rows.stride + 1;
  }

  void run(size_t pixels) {
    const size_t steps = pixels + kSkew * (kRows - 1);
    size_t at = 0;
    for (; at < kSkew * (kRows - 1); at += kRows) block<true>(at);
    for (; at < steps; at += kRows) block<false>(at);
  }

 private:
  // As many steps as there are rows. At first, some rows have not begun: what they read as and give is zero.
  template <bool kBegins>
  void block(size_t at) {
    Bytes v[kRows];
    for (size_t i = 0; i < kRows; ++i) {
      v[i] = widened(from_[i] + offset(at, i));
      if (kBegins) v[i] &= begun(at, i);
    }
    transpose<kLane>(v);
    Bytes above = widened(above_ + at * kPixel);
    for (size_t i = 0; i < kRows; ++i) {
      const Bytes b = pick<next_lane<kLane>>(before_, above);
      above = pick<following>(above, above);
      before_ = last_;
      last_ = v[i] + predicted(last_, b);
      corner_ = b;
      v[i] = last_;
    }
    transpose<kLane>(v);
    for (size_t i = 0; i < kRows && i < count_; ++i) {
      store(narrowed(v[i]), out_ + i * stride_ + offset(at, i));
    }
  }

  Bytes predicted(Bytes a, Bytes b) const {
    return paeth(a & looks_.left, b & looks_.up, corner_ & looks_.corner) | (average(a, b) & looks_.average);
  }

  static constexpr size_t following(size_t i) { return (i + kLane) % kVectorBytes; }
  static constexpr std::ptrdiff_t offset(size_t at, size_t row) {  // before the row, where it has not begun
    return (static_cast<std::ptrdiff_t>(at) - static_cast<std::ptrdiff_t>(kSkew * row)) *
           std::ptrdiff_t{kPixel};
  }

  static Bytes widened(const uint8_t* from) {
    const Bytes read = load(from);
    return kPixel == kLane ? read : pick<spread<kPixel, kLane>>(read, read);
  }
  static Bytes narrowed(Bytes lanes) {
    return kPixel == kLane ? lanes : pick<close_up<kPixel, kLane>>(lanes, lanes);
  }

  // Zero for the lanes that lie before the row's first pixel.
  static Bytes begun(size_t at, size_t row) {
    static constexpr uint8_t kEdge[2 * kVectorBytes] = {
        0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    const size_t missing = kSkew * row > at ? (kSkew * row - at) * kLane : 0;
    return load(kEdge + kVectorBytes - (missing < kVectorBytes ? missing : kVectorBytes));
  }

  Looks looks_;
  const uint8_t* above_;
  uint8_t* out_;
  size_t stride_, count_;
  const uint8_t* from_[kRows];
  Bytes last_ = {}, before_ = {};  // what the last step gave, and the one before it
  Bytes corner_ = {};              // what was above in the last step
};

template <size_t kPixel>
void walk(const FilteredRows& rows, const uint8_t* above, size_t pixels, uint8_t* out, size_t stride) {
  constexpr size_t kLane = kVectorBytes / filter_rows(kPixel);
  Wave<kPixel, kLane>(rows, above, out, stride).run(pixels);
}

void undo(size_t pixel_bytes, const FilteredRows& rows, const uint8_t* above, size_t pixels, uint8_t* out,
          size_t stride) {
  switch (pixel_bytes) {
    case 1:
      return walk<1>(rows, above, pixels, out, stride);
    case 2:
      return walk<2>(rows, above, pixels, out, stride);
    case 3:
      return walk<3>(rows, above, pixels, out, stride);
    case 4:
      return walk<4>(rows, above, pixels, out, stride);
    case 6:
      return walk<6>(rows, above, pixels, out, stride);
    default:
      return walk<8>(rows, above, pixels, out, stride);
  }
}

}  // namespace
}  // namespace stoker
