#include "objects/tariff/tariff_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "objects/tariff/budget_check.h"

namespace carve::objects {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string document(const std::string& spec) {
  return R"({"apiVersion":"carve.dev/v1","kind":"Tariff","metadata":{"name":"t"},"spec":{)" + spec + "}}";
}

std::vector<std::string> messages(const std::string& spec) {
  std::vector<std::string> out;
  const auto read = read_tariff(document(spec));
  if (!read)
    for (const auto& error : read.error()) out.push_back(error.message);
  return out;
}

const std::string good =
    R"("currency":"EUR","from":"2026-11-01","pricePerGpuHour":"0.30","granularity":"1m","minimum":"10m",)"
    R"("units":[{"model":"NVIDIA H100","gpuHourUnits":"42.5"}])";

TEST(TariffDocument, parses_numbers_exactly) {
  const auto read = read_tariff(document(good));
  ASSERT_TRUE(read) << read.error()[0].message;
  const auto tariff = tariff_of(read->spec);
  ASSERT_TRUE(tariff);
  EXPECT_EQ(bill::text(tariff->price), "0.300000");
  EXPECT_EQ(bill::text(tariff->units.at("NVIDIA H100")), "42.500000");
  EXPECT_EQ(bill::text(tariff->units.at("NVIDIA A10")), "10.000000");
  EXPECT_EQ(tariff->granularity, 60 * bill::second_ns);
  EXPECT_EQ(tariff->minimum, 600 * bill::second_ns);
}

TEST(TariffDocument, units_replace_the_shipped_ones) {
  objects::TariffSpec spec{
      .currency = "EUR", .from = "2026-11-01", .units = {{"NVIDIA A10", "12"}}, .price_per_gpu_hour = "1"};
  EXPECT_EQ(bill::text(tariff_of(spec)->units.at("NVIDIA A10")), "12.000000");
}

TEST(TariffDocument, all_errors_are_reported_together) {
  EXPECT_THAT(messages(R"("currency":"EUR","from":"soon","pricePerGpuHour":"-1","granularity":"1d",)"
                       R"("units":[{"model":"A","gpuHourUnits":"1e3"},{"model":"A","gpuHourUnits":"1"}])"),
              ElementsAre(HasSubstr("spec.from 'soon': must be a date"),
                          HasSubstr("spec.units[0].gpuHourUnits '1e3'"),
                          "spec.units[1].model: 'A' occurs twice", HasSubstr("spec.pricePerGpuHour '-1'"),
                          "spec.granularity: '1d' is not a duration from 0s to 24h, such as 60s, 10m or 1h"));
  EXPECT_THAT(messages(R"("currency":"euro","from":"2026-11-01","pricePerGpuHour":"1")"),
              ElementsAre(HasSubstr("spec: currency 'euro': must be three capital letters")));
  EXPECT_THAT(messages(R"("currency":"EUR","from":"2026-11-01","pricePerGpuHour":"1","granularity":"0s")"),
              ElementsAre(HasSubstr("spec: granularity: must be above 0")));
  EXPECT_THAT(messages(R"("currency":"EUR","from":"2026-11-01","pricePerGpuHour":"1","prise":"1")"),
              ElementsAre(HasSubstr("spec.prise: unknown field")));
}

TEST(BudgetDocument, the_limit_is_either_gpu_hours_or_an_amount) {
  const auto read = [](const std::string& spec) {
    return read_budget(R"({"apiVersion":"carve.dev/v1","kind":"Budget","metadata":{"name":"b"},"spec":{)" +
                       spec + "}}");
  };
  EXPECT_TRUE(read(R"("account":"research","gpuHours":"12.5","then":"refuse")"));
  const auto budget = read(R"("account":"research","gpuHours":"12.5","then":"hold")");
  ASSERT_TRUE(budget) << budget.error()[0].message;
  EXPECT_EQ(bill::text(limit_of(budget->spec)), "12.500000");
  EXPECT_THAT(budget->spec.at, ElementsAre(80, 100));
  const std::pair<const char*, const char*> rows[] = {
      {R"("account":"a")", "spec: set either gpuHours or amount"},
      {R"("account":"a","gpuHours":"1","amount":"1")", "spec: set either gpuHours or amount"},
      {R"("gpuHours":"1")", "spec.account: is required: the account whose slices count"},
      {R"("account":"a","amount":"0")", "spec.amount: must be above 0"},
      {R"("account":"a","amount":"1,5")",
       "spec.amount '1,5': must be a decimal number with at most 6 decimals, such as 0.30"},
      {R"("account":"a","amount":"1","window":"week")", "spec.window: 'week' is not supported; use month"},
      {R"("account":"a","amount":"1","at":[0])", "spec.at: 0 is not a whole percentage from 1 to 1000"},
      {R"("account":"a","amount":"1","then":"kill")", "spec.then: 'kill' must be warn, hold or refuse"},
  };
  for (const auto& [spec, message] : rows) {
    const auto refused = read(spec);
    ASSERT_FALSE(refused) << spec;
    EXPECT_EQ(refused.error()[0].message, message);
  }
}

}  // namespace
}  // namespace carve::objects
