#include "core/examples/label.h"

#include "core/base/errors.h"

namespace stoker {
namespace {

// The position of the only 1 among zeros, or -1 where all are zero.
template <typename Value>
int64_t position_of_one(std::string_view key, std::span<const Value> values) {
  int64_t position = -1;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == 0) continue;
    if (values[i] != 1 || position >= 0) {
      throw Error(ErrorCode::kBadExample, "feature '" + std::string(key) + "' is not one-hot: value " +
                                              std::to_string(i) + " of " + std::to_string(values.size()) +
                                              " is " + std::to_string(values[i]) +
                                              (position >= 0 ? ", behind another 1" : "; it must be 0 or 1"));
    }
    position = static_cast<int64_t>(i);
  }
  return position;
}

}  // namespace

int64_t label_of(const FeatureView& view, const LabelKeys& keys, std::vector<int64_t>& numbers) {
  if (keys.encoding == LabelEncoding::kId) return view.first_int64();
  int64_t position = -1;
  if (view.kind() == FeatureKind::kBytes) {
    position = position_of_one(view.key(), view.first_bytes());
  } else {
    numbers.clear();
    view.append_to(numbers);
    position = position_of_one(view.key(), std::span<const int64_t>(numbers));
  }
  if (position < 0) return -1;
  return static_cast<int64_t>(static_cast<uint64_t>(position) + static_cast<uint64_t>(keys.base));
}

}  // namespace stoker
