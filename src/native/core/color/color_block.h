// Colour jitter on a stretch of pixels, for the instruction set that color_lanes.h is compiled for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/color/color_kernels.h"
#include "core/color/color_lanes.h"

namespace stoker {
namespace {

// What is worked on at a time, channel by channel; small enough for the first-level cache.
constexpr size_t kBlock = 128;
struct Block {
  alignas(kVectorBytes) float red[kBlock];
  alignas(kVectorBytes) float green[kBlock];
  alignas(kVectorBytes) float blue[kBlock];
};

// Brightness and contrast.
void pull(Block& block, float grey, float factor) {
  for (float* channel : {block.red, block.green, block.blue}) {
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

void change(std::span<const ColorStep> steps, uint8_t* rgb, size_t pixels) {
  Block block{};  // the end of the last block is worked on too, and must be numbers
  while (pixels > 0) {
    const size_t here = pixels < kBlock ? pixels : kBlock;
    load(rgb, block, here);
    for (const ColorStep& step : steps) change_block(step, block);
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
