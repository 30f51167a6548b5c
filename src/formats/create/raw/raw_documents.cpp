// See raw_documents.hpp. The number of steps stands alone in the document: the step that follows 0 to 8 of ten changes
// one byte of it.
#include "formats/create/raw/raw_documents.hpp"

#include "base/json.hpp"
#include "formats/create/check_schema.hpp"
#include "formats/create/stores/document_text.hpp"
#include "formats/faults.hpp"

namespace penstock::formats {
namespace {

constexpr const char* kRawRoot = "penstock.json";
constexpr const char* kRawKinds = "biufc";  // of types that NumPy has

std::string numpy_text(const ElementType& type) {
    return (type.word_bytes > 1 ? "<" : "|") + std::string(1, type.kind) + std::to_string(type.item_bytes);
}

std::string attributes_of(std::span<const NewAttribute> attributes) {
    std::string text = "{";
    for (const NewAttribute& one : attributes) {
        text += (text.size() == 1 ? "" : ",") + base::json_quoted(one.name) + ":" + attribute_text(one);
    }
    return text + "}";
}

std::string variable_text(const FileSchema& schema, const NewVariable& one) {
    const bool is_growing = grows(schema, one);
    return R"({"file":)" + base::json_quoted(one.name + ".raw") + R"(,"dtype":")" + numpy_text(one.type) +
           R"(","grows":)" + (is_growing ? "true" : "false") + R"(,"shape":)" + list_text(step_shape(schema, one)) +
           R"(,"dimensions":)" + dimensions_text(schema, one) + R"(,"attributes":)" + attributes_of(one.attributes) +
           "}";
}

}  // namespace

RawDocuments::RawDocuments(const FileSchema& schema, const std::string& store) : schema_(schema) {
    for (NewVariable& one : schema_.variables) {
        one.values.clear();
        if (std::string(kRawKinds).find(one.type.kind) == std::string::npos) {
            throw not_created(store, "variable " + shown(one.name) + " has dtype " + one.type.name +
                                         ", which a raw history does not have",
                              "use bool, integers, floats or complex numbers");
        }
        all_ += (all_.empty() ? "" : ",\n") + base::json_quoted(one.name) + ":" + variable_text(schema_, one);
    }
}

std::string RawDocuments::root_file() const { return kRawRoot; }

std::string RawDocuments::root(std::uint64_t steps) const {
    return R"({"format":"penstock raw history","version":1,"steps":)" + std::to_string(steps) + ",\n" +
           R"("attributes":)" + attributes_of(schema_.attributes) + ",\n\"variables\":{\n" + all_ + "}}\n";
}

std::string RawDocuments::unfinished_file() const { return std::string(".") + kRawRoot + ".new"; }

std::string RawDocuments::data_file(const StoreBlock& block, std::uint64_t) const {
    return schema_.variables[block.variable].name + ".raw";
}

}  // namespace penstock::formats
