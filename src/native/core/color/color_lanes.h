// The arithmetic of colour jitter, written once and compiled for each instruction set by the file that
// includes it. Everything is in an unnamed namespace: code for one set must never be linked into another.
//
// Colours are float32 vectors of whole numbers 0..255, by the vector extension that GCC and Clang have in
// common. Only operations that IEEE 754 defines to the last bit occur, one rounding each (-ffp-contract=off),
// so the bytes are the same everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace stoker {
namespace {

#ifdef __AVX__
constexpr size_t kVectorBytes = 32;
#else
constexpr size_t kVectorBytes = 16;
#endif
using Lanes [[gnu::vector_size(kVectorBytes)]] = float;
using WholeLanes [[gnu::vector_size(kVectorBytes)]] = int32_t;
constexpr size_t kLanes = kVectorBytes / sizeof(float);

inline Lanes lanes(const float* from) {
  Lanes value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

inline void put(Lanes value, float* to) {
  std::memcpy(to, &value, sizeof value);
}

inline Lanes all(float value) {
  return Lanes{} + value;
}

inline Lanes whole(Lanes x) {
  return __builtin_convertvector(__builtin_convertvector(x, WholeLanes), Lanes);
}

inline Lanes smaller(Lanes a, Lanes b) {
  return a < b ? a : b;
}

inline Lanes larger(Lanes a, Lanes b) {
  return a > b ? a : b;
}

inline Lanes clip(Lanes x, float low, float high) {
  return smaller(larger(x, all(low)), all(high));
}

// Image.blend(from, to, factor).
inline Lanes blend(Lanes from, Lanes to, Lanes factor) {
  return whole(clip(from + factor * (to - from), 0.0F, 255.0F));
}

// Image.convert("L"): every term and sum is below 2^24, so nothing is rounded before the cut.
inline Lanes luma(Lanes red, Lanes green, Lanes blue) {
  return whole((red * 19595.0F + green * 38470.0F + blue * 7471.0F + 32768.0F) * 0x1p-16F);
}

// Hue, 0..255, of convert("HSV").
inline Lanes hue_of(Lanes red, Lanes green, Lanes blue, Lanes most, Lanes least) {
  const Lanes range = most - least, middle = red + green + blue - most - least;
  const Lanes part = (most - middle) / larger(range, all(1.0F));
  const Lanes from_red = green < blue ? part - 1.0F : 1.0F - part;
  const Lanes from_green = red >= blue ? 1.0F + part : 3.0F - part;
  const Lanes from_blue = green >= red ? 3.0F + part : 5.0F - part;
  const Lanes sixth = (most == red ? from_red : most == green ? from_green : from_blue) / 6.0F;
  return whole((sixth < 0.0F ? sixth + 1.0F : sixth) * 255.0F);
}

// One channel of convert("RGB"). Hues lie on a ring of 510, and `hue` is counted from the channel's own. A
// channel is full up to 85 from its hue and at its least from 170 on. 255 times 85 is odd, so no quotient is
// a half that would have to be rounded.
inline Lanes shade(Lanes value, Lanes saturation, Lanes hue) {
  const Lanes away = clip(smaller(hue, 510.0F - hue) - 85.0F, 0.0F, 85.0F);
  return whole(value * (21675.0F - saturation * away) * (1.0F / 21675.0F) + 0.5F);
}

inline Lanes distance(Lanes a, float b) {
  return larger(a - b, b - a);
}

}  // namespace
}  // namespace stoker
