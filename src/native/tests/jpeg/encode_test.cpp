// What encode_jpeg() writes with tables of its own, compared with libjpeg's optimised coding byte for byte.
#include "core/jpeg/encode.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "core/base/pixels.h"
#include "core/jpeg/optimal_huffman.h"
#include "tests/libjpeg_reference.h"
#include "tests/photo.h"
#include "tests/rounds.h"

namespace stoker {
namespace {

using Bytes = std::vector<uint8_t>;

// The procedure of T.81 annex K.2, figures K.1 to K.4, as it stands there.
HuffmanCode code_of_the_standard(std::vector<int64_t> counts) {
  std::vector<int> sizes(257), others(257, -1), of_size(300);
  counts.push_back(1);
  while (true) {
    int least = -1, next = -1;
    for (int i = 0; i < 257; ++i) {
      if (counts[i] != 0 && (least < 0 || counts[i] <= counts[least])) least = i;
    }
    for (int i = 0; i < 257; ++i) {
      if (i != least && counts[i] != 0 && (next < 0 || counts[i] <= counts[next])) next = i;
    }
    if (next < 0) break;
    counts[least] += counts[next];
    counts[next] = 0;
    for (++sizes[least]; others[least] >= 0; ++sizes[least]) least = others[least];
    others[least] = next;
    for (++sizes[next]; others[next] >= 0; ++sizes[next]) next = others[next];
  }
  HuffmanCode code;
  size_t symbols = 0;
  for (int size = 1; size < 257; ++size) {
    for (int symbol = 0; symbol < 256; ++symbol) {
      if (sizes[symbol] == size) code.symbols[symbols++] = static_cast<uint8_t>(symbol);
    }
  }
  for (const int size : sizes) of_size[size] += size != 0;
  int i = 299;
  while (true) {
    if (of_size[i] > 0) {
      int j = i - 1;
      do --j;
      while (of_size[j] == 0);
      of_size[i] -= 2;
      of_size[i - 1] += 1;
      of_size[j + 1] += 2;
      of_size[j] -= 1;
    } else if (--i == 16) {
      break;
    }
  }
  while (of_size[i] == 0) --i;
  --of_size[i];
  for (int size = 1; size <= 16; ++size) code.counts[size - 1] = static_cast<uint8_t>(of_size[size]);
  return code;
}

void check_code(const std::vector<uint32_t>& counts) {
  const HuffmanCode code = optimal_huffman(std::span<const uint32_t, kHuffmanSymbols>(counts));
  REQUIRE(code == code_of_the_standard({counts.begin(), counts.end()}));
}

TEST_CASE("Huffman codes are those of the standard's procedure") {
  std::mt19937 random(5);
  std::vector<uint32_t> counts(kHuffmanSymbols);
  counts[7] = 1;
  check_code(counts);
  counts[255] = 3'000'000'000;
  check_code(counts);
  for (const uint32_t same : {1U, 9U}) check_code(std::vector<uint32_t>(kHuffmanSymbols, same));
  for (const bool upwards : {false, true}) {  // codes of many more bits than 16
    std::fill(counts.begin(), counts.end(), 0);
    uint32_t a = 1, b = 1;
    for (size_t i = 0; i < 44; ++i, b += a, a = b - a) counts[upwards ? i : 255 - i] = b;
    check_code(counts);
  }
  for (int round = 0; round < 3000 / tests::kThinned; ++round) {
    const uint32_t symbols = random() % 256 + 1, most = 1U << (random() % 24);
    const bool steep = random() % 2 == 0;
    for (uint32_t& count : counts) {
      const bool there = random() % 256 < symbols;
      count = !there ? 0 : steep ? 1 + (most >> (random() % 24)) : 1 + random() % most;
    }
    counts[random() % 256] += 1;
    check_code(counts);
  }
}

// Pictures that few have in common but bytes that are hard: noise, extremes, one colour, and waves.
Bytes picture(Extent size, int channels, uint32_t kind, std::mt19937& random) {
  if (kind == 0) return tests::waves(size, channels, static_cast<int>(random() % 99));
  Bytes pixels(static_cast<size_t>(size.width) * static_cast<size_t>(size.height) *
               static_cast<size_t>(channels));
  const uint32_t color = random() % 256, rare = random() % 500 + 1;
  for (uint8_t& value : pixels) {
    const uint32_t any = random();
    value = static_cast<uint8_t>(kind == 1         ? any
                                 : kind == 2       ? (any % 2) * 255
                                 : any % rare == 0 ? any >> 8
                                                   : color);
  }
  return pixels;
}

struct Sampling {
  int across, down;
};

void check_bytes(const Bytes& pixels, Extent size, int channels, int quality, Sampling sampling,
                 uint32_t restart_interval) {
  CAPTURE(size.width);
  CAPTURE(size.height);
  CAPTURE(channels);
  CAPTURE(quality);
  CAPTURE(sampling.across);
  CAPTURE(sampling.down);
  CAPTURE(restart_interval);
  const Bytes file = encode_jpeg(pixels.data(), size, channels,
                                 {.quality = quality,
                                  .horizontal_sampling = sampling.across,
                                  .vertical_sampling = sampling.down,
                                  .restart_interval = restart_interval});
  const bool grey = channels == 1;  // libjpeg writes factors of a single component as they are
  REQUIRE(file == tests::reference_jpeg(pixels, size, channels,
                                        {.quality = quality,
                                         .across = grey ? 1 : sampling.across,
                                         .down = grey ? 1 : sampling.down,
                                         .restart_interval = static_cast<int>(restart_interval),
                                         .optimised = true}));
}

TEST_CASE("an encoded image has the bytes of libjpeg's optimised coding") {
  std::mt19937 random(8);
  constexpr Sampling kSamplings[] = {{2, 2}, {1, 1}, {2, 1}, {1, 2}, {4, 1}, {4, 2}, {1, 4}};
  constexpr int kQualities[] = {1, 20, 75, 90, 100};
  for (const Sampling sampling : kSamplings) {
    for (const int quality : kQualities) {
      for (uint32_t kind = 0; kind < 4; ++kind) {
        for (int round = 0; round < 6; ++round) {
          const int most = round < 3 ? 40 : 200;
          const Extent size{static_cast<int32_t>(random() % most) + 1,
                            static_cast<int32_t>(random() % most) + 1};
          const int channels = random() % 4 == 0 ? 1 : 3;
          const uint32_t interval = random() % 2 == 0 ? 0 : random() % 40 + 1;
          check_bytes(picture(size, channels, kind, random), size, channels, quality, sampling, interval);
        }
      }
    }
  }
}

TEST_CASE("so has one whose symbols would take too much memory") {
  std::mt19937 random(9);
  for (const Extent size : {Extent{2048, 1024}, {2048, 1025}, {65500, 3}, {3, 65500}}) {
    check_bytes(picture(size, 1, 3, random), size, 1, 90, {1, 1}, 500);
  }
}

}  // namespace
}  // namespace stoker
