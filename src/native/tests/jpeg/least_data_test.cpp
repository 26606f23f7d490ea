// What a JPEG claims beside the data that it has.
#include "core/jpeg/least_data.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/base/scratch_bytes.h"
#include "core/jpeg/decoder.h"
#include "core/jpeg/header.h"
#include "tests/libjpeg_reference.h"

namespace stoker {
namespace {

using tests::reference_jpeg;
using tests::ReferenceSpec;
using Bytes = std::vector<uint8_t>;

// The slow twin of blocks_of: a component's own samples, one row and one column of blocks after the other.
uint64_t counted_blocks(Extent image, int across, int down, int most_across, int most_down) {
  const auto counted = [](int32_t side, int factor, int most) {
    int64_t blocks = 0;
    for (int64_t sample = 0; sample * most < int64_t{side} * factor; sample += 8) ++blocks;
    return static_cast<uint64_t>(blocks);
  };
  return counted(image.width, across, most_across) * counted(image.height, down, most_down);
}

struct Kind {
  const char* name;
  int channels;
  ReferenceSpec spec;
};

const Kind kKinds[] = {
    {"grey", 1, {.optimised = true}},
    {"4:4:4", 3, {.optimised = true}},
    {"4:2:0", 3, {.across = 2, .down = 2, .optimised = true}},
    {"4:2:2 with restart markers", 3, {.across = 2, .restart_interval = 7, .optimised = true}},
    {"4:1:1", 3, {.across = 4, .optimised = true}},
    {"usual tables", 3, {.across = 2, .down = 2}},
    {"scan by scan", 3, {.across = 2, .optimised = true, .scan_by_scan = true}},
    {"progressive", 3, {.across = 2, .down = 2, .progressive = true}},
    {"grey, progressive", 1, {.progressive = true}},
    {"arithmetic", 3, {.arithmetic = true}},
    {"arithmetic and progressive", 3, {.progressive = true, .arithmetic = true}},
};

Bytes blank(Extent size, const Kind& kind) {
  const Bytes pixels(
      static_cast<size_t>(size.width) * static_cast<size_t>(size.height) * static_cast<size_t>(kind.channels),
      128);
  return reference_jpeg(pixels, size, kind.channels, kind.spec);
}

// The same file with another size in its frame header.
Bytes claiming(Bytes file, Extent size) {
  for (size_t at = 2; at + 9 < file.size(); at += 2 + (file[at + 2] << 8 | file[at + 3])) {
    const uint8_t marker = file[at + 1];
    if (marker < 0xC0 || marker > 0xCF || marker == 0xC4 || marker == 0xC8 || marker == 0xCC) continue;
    file[at + 5] = static_cast<uint8_t>(size.height >> 8);
    file[at + 6] = static_cast<uint8_t>(size.height);
    file[at + 7] = static_cast<uint8_t>(size.width >> 8);
    file[at + 8] = static_cast<uint8_t>(size.width);
    return file;
  }
  FAIL("no frame header");
  return file;
}

template <typename Work>
std::string problem_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    REQUIRE(error.code() == ErrorCode::kBadImage);
    return error.what();
  }
  return "";
}

std::string problem_of_header(const Bytes& file) {
  return problem_of([&] { check_jpeg(file); });
}

std::string problem_of_decoder(const Bytes& file) {
  JpegDecoder decoder;
  return problem_of([&] { decoder.open(file); });
}

TEST_CASE("blocks are those of a count one by one") {
  std::mt19937 random(2);
  for (int round = 0; round < 2000; ++round) {
    const Extent size{1 + static_cast<int32_t>(random() % 700), 1 + static_cast<int32_t>(random() % 700)};
    const int most_across = 1 + static_cast<int>(random() % 4),
              most_down = 1 + static_cast<int>(random() % 4);
    const int across = 1 + static_cast<int>(random() % 4) % most_across;
    const int down = 1 + static_cast<int>(random() % 4) % most_down;
    REQUIRE(blocks_of(size, across, down, most_across, most_down) ==
            counted_blocks(size, across, down, most_across, most_down));
  }
}

TEST_CASE("a blank image, which has the least data, is accepted in every coding and size") {
  std::mt19937 random(3);
  JpegDecoder decoder;
  for (const Kind& kind : kKinds) {
    CAPTURE(kind.name);
    for (int round = 0; round < 25; ++round) {
      const Extent size{1 + static_cast<int32_t>(random() % 600), 1 + static_cast<int32_t>(random() % 600)};
      CAPTURE(size.width);
      CAPTURE(size.height);
      const Bytes file = blank(size, kind);
      REQUIRE(problem_of_header(file).empty());
      decoder.open(file);
      const RgbxView view = decoder.decode({0, 0, size.width, size.height});
      REQUIRE(view.row(size.height - 1)[(static_cast<size_t>(size.width) - 1) * kRgbxBytes] == 128);
    }
  }
}

TEST_CASE("what claims more than its data hold is refused by the header check and the decoder alike") {
  for (const Kind& kind : kKinds) {
    CAPTURE(kind.name);
    const Bytes file = blank({64, 64}, kind);
    for (const Extent lie : {Extent{11'585, 11'585}, {65'500, 2'049}, {2'049, 65'500}}) {
      const Bytes bad = claiming(file, lie);
      const std::string problem = problem_of_header(bad);
      if (kind.spec
              .arithmetic) {  // zeros at the end of such data are left out, and these are all that it has
        CHECK(problem.empty());
        continue;
      }
      CHECK(problem.find("its header claims " + std::to_string(lie.width)) != std::string::npos);
      CHECK(problem_of_decoder(bad) == problem);
    }
    for (int32_t side = 64; side < 4'000; side += 61) {  // the same line, to the block
      const Bytes bad = claiming(file, {side, side + 13});
      CAPTURE(side);
      REQUIRE(problem_of_decoder(bad) == problem_of_header(bad));
    }
  }
}

TEST_CASE("the least data of a blank grey image are all that it has") {
  const Kind& grey = kKinds[0];
  const Bytes file = blank({800, 800}, grey);  // 10,000 blocks of 2 bits
  CHECK(problem_of_decoder(file).empty());
  CHECK(problem_of_decoder(claiming(file, {800, 808})).find("at least 2525 bytes") != std::string::npos);
}

// What is resident, of anonymous pages; 0 where that is not known, or what is freed stays.
size_t resident_bytes() {
#if defined(STOKER_SANITIZE_ADDRESS) || defined(STOKER_SANITIZE_THREAD)
  return 0;
#endif
  std::ifstream file("/proc/self/statm");
  size_t total = 0, resident = 0, shared = 0;
  file >> total >> resident >> shared;
  return (resident - shared) * 4096;
}

TEST_CASE("a large progressive image takes memory for a few rows of its coefficients") {
  if (resident_bytes() == 0) return;
  JpegDecoder decoder;
  const Extent size{3000, 2400};
  const Bytes large = blank(size, kKinds[7]);
  const size_t before = resident_bytes();
  decoder.open(large);
  decoder.start({0, 0, size.width, size.height});  // 21 MB of coefficients
  for (int32_t end = 0; end < size.height;) {
    const RgbxRows rows = decoder.next();
    end = rows.first + rows.pixels.size.height;
  }
  CHECK(resident_bytes() < before + (size_t{2} << 20));
}

TEST_CASE("scratch memory grows to what is asked for, and shrinks after an outlier") {
  constexpr size_t kMiB = size_t{1} << 20;
  ScratchBytes scratch;
  uint8_t* const first = scratch.take(3 * kMiB);
  CHECK(scratch.take(1) == first);
  CHECK(scratch.size() == 3 * kMiB);
  scratch.take(100 * kMiB);
  CHECK(scratch.size() == 100 * kMiB);
  scratch.take(25 * kMiB);  // no outlier
  CHECK(scratch.size() == 100 * kMiB);
  scratch.take(kMiB)[kMiB - 1] = 1;
  CHECK(scratch.size() == kMiB);
  scratch.take(16 * kMiB);
  scratch.take(1);
  CHECK(scratch.size() == 16 * kMiB);
  scratch.rest();
  CHECK(scratch.size() == 16 * kMiB);
  scratch.take(17 * kMiB);
  scratch.rest();
  CHECK(scratch.size() == 0);
  scratch.take(1)[0] = 1;
  CHECK(scratch.size() == 1);
}

}  // namespace
}  // namespace stoker
