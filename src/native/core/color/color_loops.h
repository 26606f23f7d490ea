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

#include "core/color/color_kernels.h"

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

// What is worked on at a time, channel by channel; small enough for the first-level cache.
constexpr size_t kBlock = 128;
struct Block {
  alignas(kVectorBytes) float red[kBlock];
  alignas(kVectorBytes) float green[kBlock];
  alignas(kVectorBytes) float blue[kBlock];
};

// Brightness and contrast.
void pull(Block& block, float grey, float factor) {
  float* const channels[] = {block.red, block.green, block.blue};
  for (float* channel : channels) {
    for (size_t i = 0; i < kBlock; i += kLanes)
      put(blend(all(grey), lanes(channel + i), all(factor)), channel + i);
  }
}

void saturate(Block& block, float factor) {
  for (size_t i = 0; i < kBlock; i += kLanes) {
    const Lanes red = lanes(block.red + i), green = lanes(block.green + i), blue = lanes(block.blue + i);
    const Lanes grey = luma(red, green, blue);
    put(blend(grey, red, all(factor)), block.red + i);
    put(blend(grey, green, all(factor)), block.green + i);
    put(blend(grey, blue, all(factor)), block.blue + i);
  }
}

void turn_hue(Block& block, float turn) {
  for (size_t i = 0; i < kBlock; i += kLanes) {
    const Lanes red = lanes(block.red + i), green = lanes(block.green + i), blue = lanes(block.blue + i);
    const Lanes most = larger(larger(red, green), blue), least = smaller(smaller(red, green), blue);
    const Lanes saturation = whole(255.0F * (most - least) / larger(most, all(1.0F)));
    const Lanes turned = hue_of(red, green, blue, most, least) + turn;
    const Lanes hue = 2.0F * (turned >= 256.0F ? turned - 256.0F : turned);
    put(shade(most, saturation, hue), block.red + i);
    put(shade(most, saturation, distance(hue, 170.0F)), block.green + i);
    put(shade(most, saturation, distance(hue, 340.0F)), block.blue + i);
  }
}

void change_block(const ColorStep& step, Block& block) {
  switch (step.op) {
    case ColorOp::kBrightness:
      return pull(block, 0.0F, step.factor);
    case ColorOp::kContrast:
      return pull(block, step.grey, step.factor);
    case ColorOp::kSaturation:
      return saturate(block, step.factor);
    case ColorOp::kHue:
      return turn_hue(block, step.turn);
  }
}

void load(const uint8_t* rgb, Block& block, size_t pixels) {
  for (size_t i = 0; i < pixels; ++i) {
    block.red[i] = static_cast<float>(rgb[3 * i]);
    block.green[i] = static_cast<float>(rgb[3 * i + 1]);
    block.blue[i] = static_cast<float>(rgb[3 * i + 2]);
  }
}

void store(const Block& block, uint8_t* rgb, size_t pixels) {
  for (size_t i = 0; i < pixels; ++i) {
    rgb[3 * i] = static_cast<uint8_t>(static_cast<int32_t>(block.red[i]));
    rgb[3 * i + 1] = static_cast<uint8_t>(static_cast<int32_t>(block.green[i]));
    rgb[3 * i + 2] = static_cast<uint8_t>(static_cast<int32_t>(block.blue[i]));
  }
}

void change(const ColorStep* steps, size_t count, uint8_t* rgb, size_t pixels) {
  Block block{};  // the end of the last block is worked on too, and must be numbers
  while (pixels > 0) {
    const size_t here = pixels < kBlock ? pixels : kBlock;
    load(rgb, block, here);
    for (size_t i = 0; i < count; ++i) change_block(steps[i], block);
    store(block, rgb, here);
    rgb += here * kRgbBytes;
    pixels -= here;
  }
}

// So many times 255 still fit 32 bits, which are summed faster than 64.
constexpr size_t kSummed = size_t{1} << 20;

uint64_t sum_luma(const uint8_t* rgb, size_t pixels) {
  uint64_t total = 0;
  while (pixels > 0) {
    const size_t here = pixels < kSummed ? pixels : kSummed;
    uint32_t sum = 0;
    for (size_t i = 0; i < here; ++i) {
      sum += (rgb[3 * i] * 19595U + rgb[3 * i + 1] * 38470U + rgb[3 * i + 2] * 7471U + 32768U) >> 16;
    }
    total += sum;
    rgb += here * kRgbBytes;
    pixels -= here;
  }
  return total;
}

}  // namespace
}  // namespace stoker
