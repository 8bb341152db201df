// The routes of objects: apply documents, list, show, change and delete. A request changes all objects that
// it names, or none: every document is checked before the first is kept.
#pragma once

#include "controller/api/api_call.h"

namespace carve::controller {

http::Response post_documents(const Call&);
http::Response list_services(const Call&);
http::Response get_service(const Call&);
http::Response put_service(const Call&);
http::Response patch_service(const Call&);
http::Response delete_service(const Call&);
http::Response get_service_logs(const Call&);
http::Response modify_service(const Call&);
http::Response start_service(const Call&);
http::Response stop_service(const Call&);

}  // namespace carve::controller
