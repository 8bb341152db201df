// The routes of tokens, for operators.
#pragma once

#include "controller/api/api_call.h"

namespace carve::controller {

http::Response list_tokens(const Call&);
http::Response post_token(const Call&);
http::Response delete_token(const Call&);

}  // namespace carve::controller
