// `carve set NAME`: changes the terms of a running slice. Its processes see the new terms at once.
#include "base/bytes.h"
#include "base/share.h"
#include "cli/sentences.h"
#include "cli/slice_options.h"
#include "cli/verbs.h"
#include "wire/api/slice.h"

namespace carve::cli {

void add_set(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("set", "Change a running slice: its memory, share, policy or class");
  auto name = std::make_shared<std::string>();
  auto options = std::make_shared<ChangeOptions>();
  verb->add_option("NAME", *name, "The slice")->required();
  add_change_options(verb, *options);
  add_output(verb, context);
  verb->footer(
      "Memory grows if the device has it free, and shrinks at most to the bytes in use. All of the changes "
      "are\n"
      "made, or none.\n"
      "  carve set nightly --compute 40%\n"
      "  carve set nightly --memory 6GiB --latency");
  verb->callback([&context, name, options] {
    const auto change = to_change(*options);
    if (!change) {
      fmt::print(stderr, "carve: {}\n", change.error());
      context.status = usage_status;
      return;
    }
    answered(
        context, context.client().patch<api::Slice>("/v1/slices/" + *name, *change), [&](const auto& slice) {
          if (context.json()) return print_json(slice);
          const api::SlicePart part = slice.parts.empty() ? api::SlicePart{} : slice.parts.front();
          fmt::print("{}: {}, {}, {}{}\n", slice.name, text(Bytes{part.quota_bytes}).c_str(),
                     part.share_bp == 0 ? "no share" : text(Share{part.share_bp}).c_str(), text(slice.policy),
                     slice.latency_class == LatencyClass::latency ? ", latency class" : "");
          const Enforcement& compute = slice.enforcement.compute;
          if (slice.isolation == Isolation::memory_and_compute && !compute.enforced())
            fmt::print("its share is {}\n", sentence(compute));
        });
  });
}

}  // namespace carve::cli
