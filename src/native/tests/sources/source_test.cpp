#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/examples/example.h"
#include "core/sources/file_set.h"
#include "core/sources/record_scan.h"
#include "core/sources/record_source.h"
#include "core/transforms/transform.h"
#include "core/transforms/transform_decoder.h"
#include "tests/photo.h"
#include "tests/shard.h"
#include "tests/transforms.h"

namespace stoker {
namespace {

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

// What one record becomes, or the code of its error.
struct Outcome {
  std::optional<ErrorCode> error;
  SourceSample sample;
};

Outcome describe(std::vector<NamedValues> features, const RecordKeys& keys, int32_t object = kWholeImage) {
  const tests::Shard shard({write_example(std::move(features))});
  const RecordSource source(shard.records(), keys, PayloadCheck::kOn);
  SourceScratch scratch;
  std::string name;
  try {
    const auto bytes = source.fetch(0, scratch);
    return {std::nullopt, source.describe({0, object}, bytes, scratch, name)};
  } catch (const Error& error) {
    return {error.code(), {}};
  }
}

RecordKeys raw_keys() {
  RecordKeys keys;
  keys.image = "image";
  keys.encoding = ImageEncoding::kRaw;
  keys.height = "height";
  keys.width = "width";
  keys.order = "order";
  return keys;
}

TEST_CASE("a raw image has exactly the bytes of its shape, whatever the numbers say") {
  const std::vector<uint8_t> pixels(5 * 7 * 3);
  const auto outcome = [&](int64_t height, int64_t width, const std::string& order) {
    return describe({{"image", BytesValues{pixels}},
                     {"height", Int64Values{height}},
                     {"width", Int64Values{width}},
                     {"order", BytesValues{tests::bytes_of(order)}}},
                    raw_keys());
  };
  CHECK(outcome(5, 7, "HWC").sample.image.size == Extent{7, 5});
  CHECK(outcome(5, 7, "CHW").sample.image.order == TensorOrder::kChw);
  CHECK(outcome(5, 7, "CWH").error == ErrorCode::kBadExample);
  const int64_t wraps = int64_t{1} << 32;  // the product of two of these is 0 in 64 bits
  for (const auto& [height, width] : std::vector<std::pair<int64_t, int64_t>>{{7, 6},
                                                                              {-5, -7},
                                                                              {0, 0},
                                                                              {0, 35},
                                                                              {kHuge, kHuge},
                                                                              {-kHuge, 1},
                                                                              {wraps, wraps},
                                                                              {wraps + 5, 7},
                                                                              {1, 35 * wraps},
                                                                              {2147483647, 2147483647}}) {
    CHECK(outcome(height, width, "HWC").error == ErrorCode::kBadExample);
  }
}

TEST_CASE("a raw image without a shape is a square") {
  RecordKeys keys = raw_keys();
  keys.height = keys.width = keys.order = "";
  for (const size_t bytes : {size_t{3}, size_t{12}, size_t{300}}) {
    const std::vector<uint8_t> pixels(bytes);
    const auto side = static_cast<int32_t>(std::lround(std::sqrt(static_cast<double>(bytes / 3))));
    CHECK(describe({{"image", BytesValues{pixels}}}, keys).sample.image.size == Extent{side, side});
  }
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{4}, size_t{6}, size_t{299}}) {
    const std::vector<uint8_t> pixels(bytes);
    CHECK(describe({{"image", BytesValues{pixels}}}, keys).error == ErrorCode::kBadExample);
  }
}

TEST_CASE("a raw image without one of its sides is an error, without the order it is HWC") {
  const std::vector<uint8_t> pixels(12);
  CHECK(describe({{"image", BytesValues{pixels}}, {"height", Int64Values{2}}}, raw_keys()).error ==
        ErrorCode::kBadExample);
  const auto plain = describe(
      {{"image", BytesValues{pixels}}, {"height", Int64Values{2}}, {"width", Int64Values{2}}}, raw_keys());
  CHECK(plain.sample.image.order == TensorOrder::kHwc);
}

TEST_CASE("a one-hot label is the position of the only 1") {
  RecordKeys keys;
  keys.image = "image";
  keys.label = {"label", LabelEncoding::kOneHot, 1};
  const std::vector<uint8_t> image{1};
  const auto of = [&](std::variant<BytesValues, FloatValues, Int64Values> values) {
    return describe({{"image", BytesValues{image}}, {"label", std::move(values)}}, keys);
  };
  const auto of_bytes = [&](std::vector<uint8_t> values) { return of(BytesValues{values}); };
  CHECK(of(Int64Values{0, 0, 1, 0}).sample.label == 3);
  CHECK(of(Int64Values{0, 0}).sample.label == -1);
  CHECK(of(Int64Values{}).sample.label == -1);
  CHECK(of(Int64Values{0, 1, 1}).error == ErrorCode::kBadExample);
  CHECK(of(Int64Values{0, 2}).error == ErrorCode::kBadExample);
  CHECK(of(Int64Values{-1, 1}).error == ErrorCode::kBadExample);
  CHECK(of_bytes({0, 0, 0, 1}).sample.label == 4);
  CHECK(of_bytes({0, 0}).sample.label == -1);
  CHECK(of_bytes({1, 1}).error == ErrorCode::kBadExample);
  CHECK(of_bytes({255}).error == ErrorCode::kBadExample);
  CHECK(of(FloatValues{0, 1}).error == ErrorCode::kBadExample);
}

TEST_CASE("objects are those of the record, and no others") {
  RecordKeys keys;
  keys.image = "image";
  keys.box_prefix = "box/";
  const std::vector<uint8_t> image{1};
  const auto of = [&](int32_t object) {
    return describe({{"image", BytesValues{image}},
                     {"box/xmin", FloatValues{0.1F, 0.2F, 0.3F}},
                     {"box/ymin", FloatValues{0.4F, 0.5F, 0.6F}},
                     {"box/xmax", FloatValues{0.7F, 0.8F, 0.9F}},
                     {"box/ymax", FloatValues{1.0F, 0.9F}}},
                    keys, object);
  };
  CHECK_FALSE(of(kWholeImage).sample.image.object);
  REQUIRE(of(1).sample.image.object);
  CHECK(of(1).sample.image.object->xmin == 0.2F);
  CHECK(of(1).sample.image.object->ymin == 0.5F);
  CHECK(of(1).sample.image.object->xmax == 0.8F);
  CHECK(of(1).sample.image.object->ymax == 0.9F);
  for (const int32_t object : {2, 3, 2147483647, -2}) CHECK(of(object).error == ErrorCode::kBadExample);
}

TEST_CASE("the rectangle around any box lies in the image") {
  const TransformSpec crops = tests::transform("ObjectCrops", {8, 8});
  const auto rectangle = [&](const ObjectBox& box, Extent image) {
    return crops.plan(image, SampleRandom(0, 0, 0), box).crop;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const std::vector<float> edges{nan, inf, -inf, -1e30F, 1e30F, -0.1F, 0.0F, 0.3F, 0.5F, 0.9999F, 1.0F, 1.1F};
  for (const Extent image : {Extent{1, 1}, Extent{10, 7}, Extent{65500, 3}}) {
    for (const float a : edges) {
      for (const float b : edges) {
        const Rect rect = rectangle({a, b, b, a}, image);
        CHECK(rect.x >= 0);
        CHECK(rect.y >= 0);
        CHECK(rect.width >= 1);
        CHECK(rect.height >= 1);
        CHECK(rect.x + rect.width <= image.width);
        CHECK(rect.y + rect.height <= image.height);
      }
    }
  }
  CHECK(rectangle({0.15F, 0.25F, 0.55F, 0.75F}, {10, 7}) == Rect{1, 1, 5, 5});
}

std::vector<std::string> labelled(int64_t records) {
  const std::vector<uint8_t> ballast(8192);  // so that other threads are at work before one has read it all
  std::vector<std::string> payloads;
  for (int64_t i = 0; i < records; ++i) {
    const Int64Values values(static_cast<size_t>(i % 4), i);
    payloads.push_back(write_example({{"ballast", BytesValues{ballast}}, {"label", values}}));
  }
  return payloads;
}

TEST_CASE("labels and counts of all records") {
  const tests::Shard shard(labelled(500));
  const auto records = shard.records();
  for (const size_t threads : {size_t{1}, size_t{4}, size_t{1000}}) {
    std::vector<uint32_t> counts(300);
    count_values(*records, "label", 100, threads, nullptr, counts);
    std::vector<int64_t> labels(300);
    read_labels(*records, {"label", LabelEncoding::kId, 0}, 100, threads, nullptr, labels);
    for (size_t i = 0; i < counts.size(); ++i) {
      CHECK(counts[i] == (100 + i) % 4);
      CHECK(labels[i] == ((100 + i) % 4 == 0 ? -1 : static_cast<int64_t>(100 + i)));
    }
  }
}

TEST_CASE("of several damaged records the first is reported, whichever is found first") {
  // Threads take 64 records at a time: the last of one piece and the first of the next, and the other way
  // round.
  for (const auto& [first, second] : std::vector<std::pair<size_t, size_t>>{{383, 384}, {320, 447}}) {
    std::vector<std::string> payloads = labelled(500);
    payloads[first] = payloads[second] = "no example";
    const tests::Shard damaged(payloads);
    for (int round = 0; round < 40; ++round) {
      std::vector<uint32_t> counts(500);
      try {
        count_values(*damaged.records("a name"), "label", 0, 4, nullptr, counts);
        FAIL("no error");
      } catch (const Error& error) {
        CHECK(error.where().record == static_cast<int64_t>(first));
        CHECK(error.where().path == "a name");
      }
    }
  }
}

int open_descriptors() {
  int open = 0;
  for (int descriptor = 0; descriptor < 256; ++descriptor) open += fcntl(descriptor, F_GETFD) != -1 ? 1 : 0;
  return open;
}

TEST_CASE("no more shards are open than allowed, and all can be read") {
  const tests::Shard shards[] = {tests::Shard({"0"}), tests::Shard({"1"}), tests::Shard({"2"}),
                                 tests::Shard({"3"}), tests::Shard({"4"})};
  RecordSet set(2);
  for (const tests::Shard& shard : shards) {
    set.add(shard.records()->where(0).path, {{0, 1 + kFrameBytes}});
  }
  const int before = open_descriptors();
  SourceScratch scratch;
  for (int round = 0; round < 3; ++round) {
    for (uint64_t i = 0; i < set.size(); ++i) {
      CHECK(set.read(i, PayloadCheck::kOn, scratch)[0] == '0' + static_cast<int>(i));
      CHECK(open_descriptors() <= before + 2);
    }
  }
}

FileList two_files(const tests::TemporaryFile& first, const tests::TemporaryFile& archive) {
  FileList list;
  list.names = first.path() + "member.jpg";
  const auto middle = static_cast<int64_t>(first.path().size());
  list.starts = {0, middle, middle + 10};
  list.labels = {4, 5};
  list.sizes = {5, 3};
  list.archives = {archive.path()};
  list.archive_of = {-1, 0};
  list.offsets = {0, 2};
  return list;
}

std::string fetched(const FileSet& set, uint64_t number) {
  SourceScratch scratch;
  const auto bytes = set.fetch(number, scratch);
  return {bytes.begin(), bytes.end()};
}

TEST_CASE("a file set reads files and slices of archives") {
  const tests::TemporaryFile file("hello"), archive("0123456789");
  FileSet set(two_files(file, archive));
  CHECK(fetched(set, 0) == "hello");
  CHECK(fetched(set, 1) == "234");
  CHECK(set.where(0).path == file.path());
  CHECK(set.where(1).path == archive.path());
  CHECK(set.where(1).offset == 2);
  CHECK(set.where(1).source == "member.jpg");
  CHECK_THROWS_AS(fetched(set, 2), Error);

  SourceScratch scratch;
  std::string name;
  CHECK(set.describe({1, kWholeImage}, {}, scratch, name).label == 5);
  CHECK_THROWS_AS(set.describe({1, 0}, {}, scratch, name), Error);
  set.set_boxes({0, 0, 2}, {{0, 0, 1, 1}, {0, 0.5F, 1, 1}});
  CHECK(set.describe({1, 1}, {}, scratch, name).image.object->ymin == 0.5F);
  CHECK_THROWS_AS(set.describe({1, 2}, {}, scratch, name), Error);
  CHECK_THROWS_AS(set.describe({0, 0}, {}, scratch, name), Error);
}

TEST_CASE("objects have their own labels or that of their image") {
  const tests::TemporaryFile file("hello"), archive("0123456789");
  const auto labels_of = [&](std::vector<int64_t> labels, uint64_t number) {
    FileSet set(two_files(file, archive));
    set.set_boxes({0, 1, 3}, {{}, {}, {}}, std::move(labels));
    SourceScratch scratch;
    std::vector<LabelledBox> boxes;
    set.append_boxes(number, {}, 4, scratch, boxes);
    std::vector<int64_t> shown;
    for (const LabelledBox& box : boxes) shown.push_back(box.label);
    return shown;
  };
  CHECK(labels_of({}, 1) == std::vector<int64_t>{4, 4});
  CHECK(labels_of({7, 8, -1}, 0) == std::vector<int64_t>{7});
  CHECK(labels_of({7, 8, -1}, 1) == std::vector<int64_t>{8, -1});
}

TEST_CASE("damaged objects are an error where they are wanted, and only there") {
  const tests::TemporaryFile file("hello"), archive("0123456789");
  FileSet set(two_files(file, archive));
  set.set_boxes({0, 1, 2}, {{}, {}}, {}, {{1, "no box"}});
  SourceScratch scratch;
  std::string name;
  std::vector<LabelledBox> boxes;
  set.append_boxes(0, {}, 4, scratch, boxes);
  CHECK(boxes.size() == 1);
  CHECK(set.describe({1, kWholeImage}, {}, scratch, name).label == 5);
  CHECK_THROWS_WITH_AS(set.append_boxes(1, {}, 4, scratch, boxes), "no box", Error);
  CHECK_THROWS_WITH_AS(set.describe({1, 0}, {}, scratch, name), "no box", Error);
}

TEST_CASE("a file that shrank or went away is an error of the system that names it") {
  const tests::TemporaryFile file("hello"), archive("0123456789");
  const FileSet set(two_files(file, archive));
  REQUIRE(truncate(file.path().c_str(), 4) == 0);
  REQUIRE(truncate(archive.path().c_str(), 4) == 0);
  for (const uint64_t number : {0, 1}) {
    try {
      fetched(set, number);
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kIo);
      CHECK(error.system_errno() != 0);
      CHECK(error.where().path == set.where(number).path);
    }
  }
  REQUIRE(unlink(file.path().c_str()) == 0);
  CHECK_THROWS_AS(fetched(set, 0), Error);
}

TEST_CASE("a file longer than an image can be is refused before memory is taken for it") {
  const tests::TemporaryFile file("hello"), archive("0123456789");
  const FileSet set(two_files(file, archive));
  REQUIRE(truncate(file.path().c_str(), static_cast<off_t>(kMostFileBytes + 1)) == 0);
  SourceScratch scratch;
  try {
    set.fetch(0, scratch);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.system_errno() == EFBIG);
    CHECK(error.where().path == file.path());
  }
  CHECK(scratch.bytes.size() == 0);
}

TEST_CASE("a file list whose columns contradict each other is refused") {
  const tests::TemporaryFile file("hello"), archive("0123456789");
  const auto refused = [&](auto change) {
    FileList list = two_files(file, archive);
    change(list);
    CHECK_THROWS_AS(FileSet{std::move(list)}, Error);
  };
  refused([](FileList& list) { list.labels.pop_back(); });
  refused([](FileList& list) { list.starts[1] = 9999; });
  refused([](FileList& list) { list.starts[0] = -1; });
  refused([](FileList& list) { list.starts[2] = 9999; });
  refused([](FileList& list) { list.names[3] = '\0'; });
  refused([](FileList& list) { list.archive_of[1] = 1; });
  refused([](FileList& list) { list.offsets[1] = -1; });
  refused([](FileList& list) { list.sizes[0] = -1; });
  FileSet set(two_files(file, archive));
  CHECK_THROWS_AS(set.set_boxes({0, 2, 1}, {{}, {}}), Error);
  CHECK_THROWS_AS(set.set_boxes({0, 2, 3}, {{}, {}}), Error);
  CHECK_THROWS_AS(set.set_boxes({0, 1, 2}, {{}, {}}, {7}), Error);
}

TEST_CASE("errors name files, members of archives, and records") {
  const Error error(ErrorCode::kBadImage, "bad");
  CHECK(std::string(located(error, {"/d/a.jpg", kUnknown, kUnknown, "a.jpg"}).what()) == "/d/a.jpg: bad");
  CHECK(std::string(located(error, {"/d/a.tar", kUnknown, 512, "a.jpg"}).what()) ==
        "a.tar, at byte 512 (a.jpg): bad");
  CHECK(std::string(located(error, {"/d/a", 3, 512, "a.jpg"}).what()) ==
        "a, record 3 at byte 512 (a.jpg): bad");
}

TEST_CASE("a raw image above the limit is refused") {
  const std::vector<uint8_t> pixels(30 * 20 * 3);
  StoredImage image{.bytes = pixels, .encoding = ImageEncoding::kRaw, .size = {30, 20}};
  const TransformSpec view = tests::transform("Resize", {20, 20});
  std::vector<uint8_t> out(20 * 20 * 3);
  TransformDecoder decoder;
  const RgbSlot slot{out.data(), 60};
  decoder.decode(image, {&view, 1}, SampleRandom(0, 0, 0), 600, {&slot, 1});
  CHECK_THROWS_AS(decoder.decode(image, {&view, 1}, SampleRandom(0, 0, 0), 599, {&slot, 1}), Error);
}

}  // namespace
}  // namespace stoker
