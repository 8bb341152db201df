// Any bytes as an AdmissionReview are rejected, or answered with an AdmissionReview.
#include <cstdint>
#include <cstdlib>

#include "kubernetes/coordinator/webhook/pod_review.h"
#include "wire/api/json_value.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace carve;
  const auto review =
      kubernetes::coordinator::review_pod(std::string_view(reinterpret_cast<const char*>(data), size), {});
  if (!review) return review.error().empty() ? (std::abort(), 0) : 0;
  const auto answer = api::parse(review->answer, api::Decimals::as_doubles, 64);
  if (!answer || !answer->contains("response")) std::abort();
  if ((*answer)["response"]["allowed"] != review->is_allowed) std::abort();
  return 0;
}
