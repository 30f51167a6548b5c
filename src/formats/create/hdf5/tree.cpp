// See tree.hpp.
#include "formats/create/hdf5/tree.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "formats/faults.hpp"
#include "penstock/error.hpp"

namespace penstock::formats {
namespace {

// The group within the group, made where it is not there.
ObjectNumber inner_group(Hdf5Tree& tree, ObjectNumber group, const std::string& name) {
    for (const Hdf5Link& link : tree.objects[group].links)
        if (link.name == name && link.leads == Hdf5Link::Leads::to_object && tree.objects[link.object].is_group)
            return link.object;
    tree.objects.push_back({.is_group = true});
    const ObjectNumber made = tree.objects.size() - 1;
    add_link(tree, group, {.name = name, .object = made});
    return made;
}

}  // namespace

void add_link(Hdf5Tree& tree, ObjectNumber group, Hdf5Link link) {
    std::vector<Hdf5Link>& links = tree.objects[group].links;
    const bool is_there =
        std::any_of(links.begin(), links.end(), [&](const Hdf5Link& one) { return one.name == link.name; });
    const bool is_cut = link.name.find_first_of(std::string_view("/\0", 2)) != std::string::npos;
    if (is_there || link.name.empty() || link.name == "." || is_cut) {
        ErrorInfo info;
        info.code = ErrorCode::invalid_argument;
        info.operation = "create";
        info.file = tree.file;
        info.cause = is_there ? "a group has two members " + link.name : shown(link.name) + " is no name of a member";
        info.advice = "give each member of a group a name of its own";
        throw Error(std::move(info));
    }
    links.push_back(std::move(link));
}

ObjectNumber add_group(Hdf5Tree& tree, const std::string& path) {
    if (tree.objects.empty()) tree.objects.push_back({.is_group = true});
    ObjectNumber group = 0;
    for (std::size_t begin = path.starts_with('/') ? 1 : 0; begin < path.size();) {
        const std::size_t end = std::min(path.find('/', begin), path.size());
        group = inner_group(tree, group, path.substr(begin, end - begin));
        begin = end + 1;
    }
    return group;
}

ObjectNumber add_object(Hdf5Tree& tree, const std::string& path, Hdf5Object object) {
    const std::size_t slash = path.rfind('/');
    const ObjectNumber group = add_group(tree, slash == std::string::npos ? "" : path.substr(0, slash));
    const ObjectNumber made = tree.objects.size();
    add_link(tree, group, {.name = path.substr(slash == std::string::npos ? 0 : slash + 1), .object = made});
    tree.objects.push_back(std::move(object));
    return made;
}

Hdf5Attribute value_attribute(NewAttribute value) { return {.value = std::move(value)}; }

}  // namespace penstock::formats
