#include "core/sources/record_fields.h"

#include <doctest/doctest.h>

#include <bit>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/examples/example.h"
#include "core/sources/cached_source.h"
#include "core/sources/concatenation.h"
#include "core/sources/file_set.h"
#include "core/sources/memory_cache.h"
#include "core/sources/record_source.h"
#include "tests/shard.h"

namespace stoker {
namespace {

using Bytes = std::vector<uint8_t>;

FieldColumn column(FeatureKind kind, bool fixed = false, size_t group = 1) {
  return {.key = "f", .kind = kind, .text = false, .fixed = fixed, .group = group};
}

// The values of the only column, or what is wrong with the record.
struct FieldOutcome {
  Bytes values;
  std::string error;
};

Bytes copy_of(std::span<const uint8_t> bytes) {
  return {bytes.begin(), bytes.end()};
}

FieldOutcome read(std::vector<NamedValues> features, const FieldSpec& spec) {
  const std::string payload = write_example(std::move(features));
  RecordFields fields;
  try {
    read_fields(tests::bytes_of(payload), spec, fields);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kBadExample);
    return {{}, error.what()};
  }
  if (!fields.columns.empty()) return {copy_of(fields.columns[0]), {}};
  return {copy_of(fields.planes[0]), {}};
}

FieldOutcome read(std::vector<NamedValues> features, const FieldColumn& wanted) {
  return read(std::move(features), FieldSpec{{wanted}, {}});
}

template <typename Number>
Bytes in_memory(const std::vector<Number>& numbers) {
  const auto* first = reinterpret_cast<const uint8_t*>(numbers.data());
  return {first, first + numbers.size() * sizeof(Number)};
}

TEST_CASE("numbers of a field lie in memory as they are") {
  const float nan = std::bit_cast<float>(0x7fc12345U);
  const std::vector<float> fractions{0.5F, -0.0F, nan, std::numeric_limits<float>::infinity()};
  CHECK(read({{"f", FloatValues{fractions}}}, column(FeatureKind::kFloat)).values == in_memory(fractions));
  const std::vector<int64_t> numbers{0, -1, std::numeric_limits<int64_t>::min(),
                                     std::numeric_limits<int64_t>::max()};
  CHECK(read({{"f", Int64Values{numbers}}}, column(FeatureKind::kInt64)).values == in_memory(numbers));
  CHECK(read({{"f", Int64Values{numbers}}}, column(FeatureKind::kInt64, true, 4)).values ==
        in_memory(numbers));
}

TEST_CASE("a list may be empty or absent where any number of values will do") {
  CHECK(read({}, column(FeatureKind::kInt64)).error.empty());
  CHECK(read({{"f", Int64Values{}}}, column(FeatureKind::kInt64)).error.empty());
  CHECK(read({{"f", FloatValues{}}}, column(FeatureKind::kFloat, false, 3)).error.empty());
  CHECK(read({}, column(FeatureKind::kFloat, true, 0)).error.empty());
}

TEST_CASE("errors of a field name its feature") {
  const Bytes three{1, 2, 3};
  const auto wrong = [](const FieldOutcome& outcome, const std::string& what) {
    CHECK(outcome.error.find("feature 'f' " + what) == 0);
  };
  wrong(read({}, column(FeatureKind::kBytes)), "is missing; it must hold bytes values");
  wrong(read({}, column(FeatureKind::kInt64, true)), "is missing; it must hold int64 values");
  wrong(read({{"f", BytesValues{three}}}, column(FeatureKind::kFloat)),
        "is of kind bytes; it must hold float");
  wrong(read({{"f", FloatValues{1}}}, column(FeatureKind::kBytes)), "is of kind float; it must hold bytes");
  wrong(read({{"f", BytesValues{}}}, column(FeatureKind::kBytes)), "is empty; it must hold bytes");
  wrong(read({{"f", BytesValues{three, three}}}, column(FeatureKind::kBytes)),
        "has 2 values; it must have one");
  wrong(read({{"f", BytesValues{three}}}, column(FeatureKind::kBytes, true, 4)),
        "has 3 bytes; it must have 4");
  wrong(read({{"f", BytesValues{three}}}, column(FeatureKind::kBytes, false, 2)),
        "has 3 bytes; it must have a multiple of 2");
  wrong(read({{"f", Int64Values{1, 2}}}, column(FeatureKind::kInt64, true, 1)),
        "has 2 values; it must have 1");
  wrong(
      read({{"f", Int64Values{1, 2}}}, column(FeatureKind::kInt64, true, std::numeric_limits<size_t>::max())),
      "has 2 values; it must have");
  wrong(read({{"f", FloatValues{1, 2}}}, column(FeatureKind::kFloat, false, 3)),
        "has 2 values; it must have a multiple of 3");
}

TEST_CASE("text is UTF-8") {
  FieldColumn text = column(FeatureKind::kBytes);
  text.text = true;
  const std::string good = "caf\xc3\xa9 \xf0\x9f\x90\xb8", bad = "caf\xe9", empty;
  CHECK(read({{"f", BytesValues{tests::bytes_of(good)}}}, text).values.size() == good.size());
  CHECK(read({{"f", BytesValues{tests::bytes_of(empty)}}}, text).error.empty());
  CHECK(read({{"f", BytesValues{tests::bytes_of(bad)}}}, text).error == "feature 'f' is not text in UTF-8");
  text.text = false;
  CHECK(read({{"f", BytesValues{tests::bytes_of(bad)}}}, text).error.empty());
}

// The first bytes of a PNG, which is as much as is looked at.
Bytes png_begin(uint8_t bits, uint8_t color) {
  Bytes file{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0, 0, 0, 13,
             'I',  'H', 'D', 'R', 0,    0,    0,    4,    0, 0, 0, 5};
  file.insert(file.end(), {bits, color});
  return file;
}

TEST_CASE("a mask is a greyscale PNG of its bits, and nothing that would be turned into one") {
  const auto of = [](const Bytes& file, unsigned bits) {
    return read({{"f", BytesValues{file}}}, FieldSpec{{}, {{"f", bits}}});
  };
  CHECK(of(png_begin(8, 0), 8).values == png_begin(8, 0));
  CHECK(of(png_begin(16, 0), 16).error.empty());
  for (const Bytes& file : {png_begin(16, 0), png_begin(8, 2), png_begin(8, 3), png_begin(1, 0),
                            png_begin(8, 4), Bytes{}, Bytes{0x89}, Bytes{0xff, 0xd8, 0xff}}) {
    CHECK(of(file, 8).error.find("feature 'f' is not a greyscale PNG of 8 bits") == 0);
  }
  Bytes cut = png_begin(8, 0);
  cut.pop_back();
  CHECK(!of(cut, 8).error.empty());
  CHECK(of(cut, 0).error.empty());  // an image, which its decoder judges
}

// Writers pack numbers; protobuf reads them one by one, too.
TEST_CASE("numbers that are not packed are read as those that are") {
  const std::string feature("\x12\x05\x0d\0\0\0\x3f", 7);  // a list of floats, whose value is 0.5
  const std::string entry =
      "\x0a\x01"
      "f\x12\x07" +
      feature;
  const std::string features = "\x0a" + std::string(1, static_cast<char>(entry.size())) + entry;
  const std::string payload = "\x0a" + std::string(1, static_cast<char>(features.size())) + features;
  RecordFields fields;
  read_fields(tests::bytes_of(payload), {{column(FeatureKind::kFloat, true)}, {}}, fields);
  CHECK(copy_of(fields.columns[0]) == in_memory(std::vector<float>{0.5F}));
}

TEST_CASE("a record says the same in one pass as in two") {
  const std::string image = "picture", text = "caf\xc3\xa9", bad = "caf\xe9";
  std::string cut = write_example({{"image", BytesValues{tests::bytes_of(image)}},
                                   {"label", Int64Values{7}},
                                   {"numbers", Int64Values{300}},
                                   {"text", BytesValues{tests::bytes_of(text)}}});
  cut.replace(cut.find("\xac\x02"), 2, "\xac\x82");  // 300 goes on behind its list
  const tests::Shard shard({
      write_example({{"image", BytesValues{tests::bytes_of(image)}},
                     {"label", Int64Values{3}},
                     {"text", BytesValues{tests::bytes_of(text)}},
                     {"numbers", Int64Values{1, -2, 300}}}),
      write_example({{"image", BytesValues{tests::bytes_of(image)}},
                     {"label", Int64Values{4}},
                     {"text", BytesValues{tests::bytes_of(bad)}},
                     {"numbers", Int64Values{}}}),
      write_example({{"image", BytesValues{tests::bytes_of(image)}}, {"label", Int64Values{5}}}),
      write_example({{"text", BytesValues{tests::bytes_of(text)}}, {"label", Int64Values{6}}}),
      cut,
  });
  RecordKeys keys;
  keys.image = "image";
  keys.label.key = "label";
  const RecordSource source(shard.records(), keys, PayloadCheck::kOn);
  const FieldSpec spec{{{.key = "text", .text = true}, {.key = "numbers", .kind = FeatureKind::kInt64}}, {}};
  for (uint64_t number = 0; number < 5; ++number) {
    SourceScratch scratch;
    const auto bytes = source.fetch(number, scratch);
    const auto outcome = [&](bool once) {
      RecordFields fields;
      std::string name, what;
      try {
        SourceSample sample;
        if (once) {
          sample = source.describe_with_fields({number, kWholeImage}, bytes, spec, scratch, name, fields);
        } else {
          sample = source.describe({number, kWholeImage}, bytes, scratch, name);
          source.read_fields(number, bytes, spec, fields);
        }
        what =
            std::string(sample.image.bytes.begin(), sample.image.bytes.end()) + std::to_string(sample.label);
        for (const auto values : fields.columns) what += "|" + std::string(values.begin(), values.end());
      } catch (const Error& error) {
        what = error.what();
      }
      return what;
    };
    CHECK(outcome(true) == outcome(false));
    CHECK((outcome(true).find("a number is cut off") != std::string::npos) == (number == 4));
  }
}

TEST_CASE("fields that no record can have are refused") {
  const auto refused = [](const FieldSpec& spec) {
    try {
      check_fields(spec);
    } catch (const Error& error) {
      return error.code() == ErrorCode::kBadArgument;
    }
    return false;
  };
  CHECK_FALSE(refused({{column(FeatureKind::kBytes)}, {{"m", 0}, {"m", 8}, {"m", 16}}}));
  CHECK(refused({{column(FeatureKind::kNone)}, {}}));
  CHECK(refused({{column(FeatureKind::kInt64, false, 0)}, {}}));
  CHECK(refused({{{.key = "f", .kind = FeatureKind::kFloat, .text = true}}, {}}));
  CHECK(refused({{{.key = "f", .kind = FeatureKind::kFloat, .form = ColumnForm::kBytes}}, {}}));
  CHECK(refused({{{.key = "f", .form = ColumnForm::kText}}, {}}));
  CHECK_FALSE(refused({{{.key = "f", .form = ColumnForm::kText, .text = true}}, {}}));
  CHECK(refused({{}, {{"m", 1}}}));
}

TEST_CASE("caches and several sources give the fields of the records behind them") {
  const std::string image = "picture";
  RecordKeys keys;
  keys.image = "image";
  const auto payload = [&](int64_t number) {
    return write_example({{"image", BytesValues{tests::bytes_of(image)}}, {"f", Int64Values{number}}});
  };
  const tests::Shard first({payload(1), payload(2)}), second({payload(3)});
  const auto source = [&](const tests::Shard& shard) {
    return std::make_shared<RecordSource>(shard.records(), keys, PayloadCheck::kOn);
  };
  const auto both =
      std::make_shared<Concatenation>(std::vector<SourcePart>{{source(first), 0}, {source(second), 7}});
  const CachedSource cached(both, std::make_shared<MemoryCache>(1 << 20));
  const FieldSpec spec{{column(FeatureKind::kInt64, true)}, {}};
  SourceScratch scratch;
  RecordFields fields;
  for (int round = 0; round < 2; ++round) {
    for (const uint64_t number : {uint64_t{2}, uint64_t{0}, uint64_t{1}}) {
      cached.read_fields(number, cached.fetch(number, scratch), spec, fields);
      const Bytes expected = in_memory(std::vector<int64_t>{static_cast<int64_t>(number) + 1});
      CHECK(copy_of(fields.columns[0]) == expected);
      const auto bytes = cached.fetch(number, scratch);
      std::string name;
      const SourceSample sample =
          cached.describe_with_fields({number, kWholeImage}, bytes, spec, scratch, name, fields);
      CHECK(sample.label == cached.describe({number, kWholeImage}, bytes, scratch, name).label);
      CHECK(copy_of(fields.columns[0]) == expected);
    }
  }
}

FileSet two_files() {
  return FileSet(FileList{.base = "",
                          .names = "ab",
                          .starts = {0, 1, 2},
                          .labels = {0, 0},
                          .sizes = {1, 1},
                          .archives = {},
                          .archive_of = {-1, -1},
                          .offsets = {0, 0}});
}

TEST_CASE("fields of files are those that are made for them") {
  FileSet files = two_files();
  const FieldSpec spec{{column(FeatureKind::kInt64, true)}, {{"m/encoded", 0}}};
  RecordFields fields;
  CHECK_THROWS_AS(files.read_fields(0, {}, spec, fields), Error);
  files.set_fields([](uint64_t number, std::span<const uint8_t> image, const FieldSpec& wanted) {
    const Bytes plane{image[0], static_cast<uint8_t>('0' + number)};
    const std::string record =
        write_example({{wanted.columns[0].key, Int64Values{static_cast<int64_t>(number)}},
                       {wanted.planes[0].key, BytesValues{plane}}});
    return Bytes(record.begin(), record.end());
  });
  for (const uint64_t number : {uint64_t{1}, uint64_t{0}}) {
    files.read_fields(number, Bytes{'p'}, spec, fields);
    CHECK(copy_of(fields.columns[0]) == in_memory(std::vector<int64_t>{static_cast<int64_t>(number)}));
    REQUIRE(fields.planes[0].size() == 2);
    CHECK(fields.planes[0][0] == 'p');
    CHECK(fields.planes[0][1] == '0' + static_cast<int>(number));
  }
  CHECK_THROWS_AS(files.read_fields(2, {}, spec, fields), Error);
  files.set_fields([](uint64_t, std::span<const uint8_t>, const FieldSpec&) { return Bytes{0xff, 0xff}; });
  CHECK_THROWS_AS(files.read_fields(0, {}, spec, fields), Error);
}

}  // namespace
}  // namespace stoker
