// The routes that every kind of object has: apply documents, list, show, change and delete. A request changes
// all objects that it names or none, because every document is checked before the first one is stored.
#pragma once

#include "controller/api/api_call.h"

namespace carve::controller {

http::Response post_documents(const Call&);
http::Response list_objects(const Call&);
http::Response get_object(const Call&);
http::Response put_object(const Call&);
http::Response patch_object(const Call&);
http::Response delete_object(const Call&);

// Returns the object as the caller may see it, with its version as the ETag.
http::Response shown(const Call&, const Object&, unsigned status = 200);

}  // namespace carve::controller
