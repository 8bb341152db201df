#include "kubernetes/api/client/libcurl.h"

#include <dlfcn.h>

#include "core/invariant.h"

namespace carve::kubernetes {
namespace {

constexpr const char* library = "libcurl.so.4";

std::string loader_message() {
  const char* const message = dlerror();
  return message != nullptr ? message : "";
}

Outcome<Libcurl> load() {
  void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return failure(FailureKind::unavailable,
                   "requests to a Kubernetes API server need {}; install the package libcurl4: {}", library,
                   loader_message());
  Libcurl out;
  std::string missing;
  const auto find = [&]<class Function>(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    if (function == nullptr && missing.empty()) missing = name;
  };
  find(out.global_init, "curl_global_init");
  find(out.easy_init, "curl_easy_init");
  find(out.easy_setopt, "curl_easy_setopt");
  find(out.easy_getinfo, "curl_easy_getinfo");
  find(out.easy_strerror, "curl_easy_strerror");
  find(out.easy_cleanup, "curl_easy_cleanup");
  find(out.multi_init, "curl_multi_init");
  find(out.multi_setopt, "curl_multi_setopt");
  find(out.multi_add_handle, "curl_multi_add_handle");
  find(out.multi_remove_handle, "curl_multi_remove_handle");
  find(out.multi_socket_action, "curl_multi_socket_action");
  find(out.multi_info_read, "curl_multi_info_read");
  find(out.multi_cleanup, "curl_multi_cleanup");
  find(out.slist_append, "curl_slist_append");
  find(out.slist_free_all, "curl_slist_free_all");
  if (!missing.empty()) return failure(FailureKind::unavailable, "{} has no function {}", library, missing);
  if (const CURLcode code = out.global_init(CURL_GLOBAL_DEFAULT); code != CURLE_OK)
    return failure(FailureKind::unavailable, "{} cannot be initialized: {}", library,
                   out.easy_strerror(code));
  return out;
}

}  // namespace

Outcome<const Libcurl*> load_libcurl() {
  static const Outcome<Libcurl> loaded = load();
  if (!loaded) return tl::unexpected(loaded.error());
  return &*loaded;
}

const Libcurl& curl() {
  static const auto loaded = load_libcurl();
  invariant(loaded.has_value(), "libcurl is loaded before a client is made");
  return **loaded;
}

}  // namespace carve::kubernetes
