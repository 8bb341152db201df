// libcurl, which is loaded when it is first used: a controller that uses no cluster runs on machines without it.
#pragma once

#include <curl/curl.h>

#include "base/result.h"

namespace carve::kubernetes {

// The functions of libcurl that the client calls, by their names without "curl_".
struct Libcurl {
  decltype(&::curl_global_init) global_init;
  decltype(&::curl_easy_init) easy_init;
  decltype(&::curl_easy_setopt) easy_setopt;
  decltype(&::curl_easy_getinfo) easy_getinfo;
  decltype(&::curl_easy_strerror) easy_strerror;
  decltype(&::curl_easy_cleanup) easy_cleanup;
  decltype(&::curl_multi_init) multi_init;
  decltype(&::curl_multi_setopt) multi_setopt;
  decltype(&::curl_multi_add_handle) multi_add_handle;
  decltype(&::curl_multi_remove_handle) multi_remove_handle;
  decltype(&::curl_multi_socket_action) multi_socket_action;
  decltype(&::curl_multi_info_read) multi_info_read;
  decltype(&::curl_multi_cleanup) multi_cleanup;
  decltype(&::curl_slist_append) slist_append;
  decltype(&::curl_slist_free_all) slist_free_all;
};

// Loads and initializes libcurl once. Fails as unavailable if the machine has no usable libcurl.so.4. Any thread.
Outcome<const Libcurl*> load_libcurl();

// Returns the loaded library. The process aborts if load_libcurl() fails.
const Libcurl& curl();

}  // namespace carve::kubernetes
