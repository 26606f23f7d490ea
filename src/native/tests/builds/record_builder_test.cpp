#include "core/builds/record_builder.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/shards/crc32c.h"
#include "core/shards/tfrecord.h"
#include "tests/photo.h"
#include "tests/shard.h"

namespace stoker {
namespace {

using std::chrono::nanoseconds;
using tests::bytes_of;

constexpr nanoseconds kLong = std::chrono::hours(1);

std::string text_of(const std::vector<uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

// What one builder makes of files with these contents, in a buffer of so many bytes.
struct Build {
  Build(const std::vector<std::string>& contents, const JpegStoring& storing, size_t buffer = 1 << 20,
        nanoseconds limit = kLong) {
    record.add("i", RecordSlot::kImage);
    record.add({"a", Int64Values{7}});
    record.add("n", RecordSlot::kFilename);
    record.add("w", RecordSlot::kWidth);
    record.add("h", RecordSlot::kHeight);
    for (const std::string& content : contents) {
      files.push_back(std::make_unique<tests::TemporaryFile>(content));
      wanted.push_back({files.back()->path(), content.size(), &record});
    }
    RecordBuilder builder(std::make_shared<BufferPool>(buffer, 1));
    out = builder.run(wanted, storing, limit);
  }

  // The record of a file by the plain writer.
  std::string expected(size_t file, const std::string& image, Extent size) const {
    const std::string name = wanted[file].path.substr(wanted[file].path.rfind('/') + 1);
    const std::string payload = write_example({{"i", BytesValues{bytes_of(image)}},
                                               {"a", Int64Values{7}},
                                               {"n", BytesValues{bytes_of(name)}},
                                               {"w", Int64Values{size.width}},
                                               {"h", Int64Values{size.height}}});
    std::vector<uint8_t> frame(payload.size() + kFrameBytes);
    write_frame(bytes_of(payload), frame);
    return text_of(frame);
  }

  std::string bytes() const { return {out.bytes.get(), out.bytes.get() + out.size}; }

  RecordTemplate record;
  std::vector<std::unique_ptr<tests::TemporaryFile>> files;
  std::vector<FileToStore> wanted;
  FramedRecords out;
};

const std::string kFirst = text_of(tests::jpeg({60, 40}));
const std::string kSecond = text_of(tests::jpeg({30, 50}, {}, 1, 3));

TEST_CASE("records end where a file is not plain") {
  for (const std::string& odd : {std::string(), std::string("no image"), kFirst.substr(0, kFirst.size() / 2),
                                 kFirst.substr(0, 2) + '\0' + kFirst.substr(2)}) {
    const Build build({kFirst, kSecond, odd, kFirst}, {});
    CHECK(build.bytes() == build.expected(0, kFirst, {60, 40}) + build.expected(1, kSecond, {30, 50}));
    CHECK(build.out.sizes.size() == 2);
    CHECK(build.out.kept == 2);
    CHECK(build.out.crc == crc32c(bytes_of(build.bytes())));
  }
}

TEST_CASE("a buffer that is too short gives way to a longer one") {
  const Build build({kFirst, kSecond, kFirst}, {}, 10);
  CHECK(build.bytes() == build.expected(0, kFirst, {60, 40}) + build.expected(1, kSecond, {30, 50}) +
                             build.expected(2, kFirst, {60, 40}));
  CHECK(build.out.crc == crc32c(bytes_of(build.bytes())));
}

TEST_CASE("records that fill little of a buffer leave it to others") {
  RecordTemplate record;
  record.add("i", RecordSlot::kImage);
  const tests::TemporaryFile file(kFirst);
  const std::vector<FileToStore> wanted{{file.path(), kFirst.size(), &record}};
  for (const bool little : {false, true}) {
    const auto pool = std::make_shared<BufferPool>(little ? 1 << 20 : 2 * kFirst.size(), 1);
    const uint8_t* const buffer = pool->take().get();
    RecordBuilder builder(pool);
    const FramedRecords records = builder.run(wanted, {}, kLong);
    CHECK(records.sizes.size() == 1);
    CHECK((pool->take().get() == buffer) == little);
  }
}

TEST_CASE("the limit of time ends a call behind a record") {
  CHECK(Build({kFirst, kSecond, kFirst}, {}, 1 << 20, nanoseconds(0)).out.sizes.size() == 1);
}

TEST_CASE("images with another size are encoded anew") {
  JpegStoring storing;
  storing.size = StoredSize{StoredSizeMode::kMax, 50, 50};
  const Build build({kFirst, kSecond}, storing);
  ReencodeSpec spec;
  spec.part = {0, 0, 60, 40};
  spec.size = {50, 33};
  const std::string smaller = text_of(Reencoder().run(bytes_of(kFirst), spec));
  CHECK(build.bytes() == build.expected(0, smaller, {50, 33}) + build.expected(1, kSecond, {30, 50}));
  CHECK(build.out.kept == 1);
  storing.keeps_small = false;
  CHECK(Build({kFirst, kSecond}, storing).out.kept == 0);
}

TEST_CASE("what was listed as huge is left alone") {
  RecordTemplate record;
  const tests::TemporaryFile file(kFirst);
  const std::vector<FileToStore> wanted{{file.path(), kFirst.size(), &record}};
  RecordBuilder builder(std::make_shared<BufferPool>(1 << 20, 1));
  CHECK(builder.run(wanted, {}, kLong).sizes.size() == 1);  // what was listed is a hint
  CHECK(builder.run(std::vector<FileToStore>{{file.path(), uint64_t{1} << 40, &record}}, {}, kLong).size ==
        0);
}

TEST_CASE("stored sizes") {
  using Mode = StoredSizeMode;
  CHECK(StoredSize{Mode::kShort, 256, 256}.target({500, 375}) == PixelSize{341, 256});
  CHECK(StoredSize{Mode::kLong, 256, 256}.target({500, 375}) == PixelSize{256, 192});
  CHECK(StoredSize{Mode::kMax, 500, 500}.target({500, 375}) == PixelSize{500, 375});
  CHECK(StoredSize{Mode::kExact, 5, 6}.target({500, 375}) == PixelSize{5, 6});
  CHECK(StoredSize{Mode::kLong, 2, 2}.target({1000, 1}) == PixelSize{2, 1});
  CHECK(StoredSize{Mode::kShort, 65500, 65500}.target({2147483647, 1}) == PixelSize{140660178878500, 65500});
}

}  // namespace
}  // namespace stoker
