// See element_types.hpp.
#include "formats/hdf5/element_types.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "formats/faults.hpp"

namespace penstock::formats {
namespace {

constexpr unsigned kMostNested = 32;
constexpr std::uint32_t kMostElementBytes = std::uint32_t{1} << 30;
constexpr std::uint64_t kWordBytesOfText = 8;  // that older versions pad names to

enum TypeClass : std::uint8_t {
    kInteger,
    kFloat,
    kTime,
    kText,
    kBits,
    kOpaque,
    kCompound,
    kReference,
    kEnum,
    kList,
    kArray,
    kComplex
};

// Size, sign bit, exponent (bit, bits), mantissa (bit, bits), bias.
struct FloatLayout {
    std::uint64_t bytes = 0, sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, mantissa_bits = 0, bias = 0;
    bool operator==(const FloatLayout&) const = default;
};
constexpr std::pair<FloatLayout, const char*> kFloats[] = {
    {{2, 15, 10, 5, 0, 10, 15}, "float16"},    {{4, 31, 23, 8, 0, 23, 127}, "float32"},
    {{8, 63, 52, 11, 0, 52, 1023}, "float64"}, {{2, 15, 7, 8, 0, 7, 127}, "bfloat16"},
    {{1, 7, 3, 4, 0, 3, 7}, "float8_e4m3fn"},  {{1, 7, 2, 5, 0, 2, 15}, "float8_e5m2"},
};

// What every description begins with.
struct TypeHead {
    TypeClass kind{};
    std::uint64_t version = 0, bits = 0;
    std::uint32_t bytes = 0;
    bool is_big_endian() const noexcept { return (bits & 1) != 0; }
};

class TypeReader {
  public:
    explicit TypeReader(StructureFields& fields) : fields_(fields) {}

    DescribedType read(unsigned depth) {
        const TypeHead head = read_head();
        if (depth > kMostNested) throw_unsupported("its types are nested more than 32 deep");
        if (head.kind == kArray) return array(head, depth);
        DescribedType found{.bytes = head.bytes};
        found.type = scalar(head, depth);
        return found;
    }

  private:
    TypeHead read_head() {
        const std::uint64_t first = fields_.number(1);
        TypeHead head{.kind = static_cast<TypeClass>(first & 15), .version = first >> 4, .bits = fields_.number(3)};
        const std::uint64_t bytes = fields_.number(4);
        if (head.version < 1 || head.version > 5)
            throw_unsupported("its type is described in version " + std::to_string(head.version));
        if (bytes == 0) fields_.wrong("describes a type of no bytes");
        if (bytes > kMostElementBytes && head.kind != kList)
            throw_unsupported("its elements have " + std::to_string(bytes) + " bytes; Penstock takes 1 GiB");
        head.bytes = static_cast<std::uint32_t>(bytes);
        return head;
    }

    ElementType scalar(const TypeHead& head, unsigned depth) {
        switch (head.kind) {
            case kInteger:
            case kBits:
                return integer(head);
            case kFloat:
                return floating(head);
            case kText:
                return {"S" + std::to_string(head.bytes), 'S', head.bytes, 1, false};
            case kOpaque:
                return opaque(head);
            case kCompound:
                return compound(head, depth);
            case kEnum:
                return enumeration(head, depth);
            case kComplex:
                return pair_of(head, read(depth + 1));
            case kTime:
                throw_unsupported("it has HDF5's time type, which no version of HDF5 defines");
            case kReference:
                throw_unsupported("its elements are references into the file");
            case kList:
                throw_unsupported("its elements have variable length", "read them from Python");
            default:
                break;
        }
        throw_unsupported("HDF5 type class " + std::to_string(head.kind) + " is unknown");
    }

    static ElementType named(const std::string& name, bool is_big_endian) {
        ElementType type;
        type_named(name, type);
        return stored_in(type, is_big_endian);
    }

    ElementType integer(const TypeHead& head) {
        constexpr std::uint64_t kSigned = 8;
        const std::uint64_t offset = fields_.number(2), bits = fields_.number(2);
        const bool is_size = head.bytes == 1 || head.bytes == 2 || head.bytes == 4 || head.bytes == 8;
        const bool is_whole = head.kind == kBits || (offset == 0 && bits == 8 * std::uint64_t{head.bytes});
        if (!is_size || !is_whole)
            throw_unsupported(
                "its integers have " + std::to_string(bits) + " bits inside " + std::to_string(head.bytes) + " bytes",
                "read them from Python");
        const bool is_signed = head.kind == kInteger && (head.bits & kSigned) != 0;
        return named((is_signed ? "int" : "uint") + std::to_string(8 * head.bytes), head.is_big_endian());
    }

    ElementType floating(const TypeHead& head) {
        constexpr std::uint64_t kVax = 0x40, kNormShift = 4, kImplied = 2;
        FloatLayout layout;
        layout.bytes = head.bytes, layout.sign = head.bits >> 8 & 0xff;
        const std::uint64_t offset = fields_.number(2), precision = fields_.number(2);
        layout.exponent = fields_.number(1), layout.exponent_bits = fields_.number(1);
        layout.mantissa = fields_.number(1), layout.mantissa_bits = fields_.number(1);
        layout.bias = fields_.number(4);
        const auto* known =
            std::find_if(std::begin(kFloats), std::end(kFloats), [&](const auto& one) { return one.first == layout; });
        const bool is_whole = offset == 0 && precision == 8 * std::uint64_t{head.bytes} && (head.bits & kVax) == 0;
        if (known == std::end(kFloats) || !is_whole || (head.bits >> kNormShift & 3) != kImplied)
            throw_unsupported("its floats are of no kind that devices know (" + std::to_string(precision) + " bits)",
                              "read them from Python");
        return named(known->second, head.is_big_endian());
    }

    ElementType opaque(const TypeHead& head) {
        fields_.skip(head.bits & 0xff);  // its tag
        return raw_type(head.bytes);
    }

    // A name, padded in the older versions.
    std::string padded_name(std::uint64_t version) {
        std::string name = fields_.text();
        if (version < 3) fields_.skip((kWordBytesOfText - (name.size() + 1) % kWordBytesOfText) % kWordBytesOfText);
        return name;
    }

    ElementType enumeration(const TypeHead& head, unsigned depth) {
        const DescribedType base = read(depth + 1);
        if (base.bytes != head.bytes || (base.type.kind != 'i' && base.type.kind != 'u'))
            throw_unsupported("it has an enumeration of no integers");
        const std::uint64_t members = head.bits & 0xffff;
        std::vector<std::string> names;
        for (std::uint64_t i = 0; i < members; ++i) names.push_back(padded_name(head.version));
        const std::span<const std::byte> values = fields_.take(members * base.bytes);
        const bool is_bool = head.bytes == 1 && members == 2 && names[0] == "FALSE" && names[1] == "TRUE" &&
                             values[0] == std::byte{0} && values[1] == std::byte{1};
        return is_bool ? named("bool", false) : base.type;
    }

    ElementType pair_of(const TypeHead& head, const DescribedType& part) {
        const bool is_known = part.type.name == "float32" || part.type.name == "float64";
        if (!is_known || !part.dimensions.empty())
            throw_unsupported("its elements are complex of " + part.type.name, "read them from Python");
        if (head.bytes != 2 * part.bytes) fields_.wrong("describes a complex number that is not two numbers");
        ElementType type;
        type_named(part.type.name == "float32" ? "complex64" : "complex128", type);
        type.is_foreign_order = part.type.is_foreign_order;
        return type;
    }

    struct TypeMember {
        std::string name;
        std::uint64_t offset = 0;
        DescribedType described{};
    };

    TypeMember member(const TypeHead& head, unsigned depth) {
        TypeMember found{.name = padded_name(head.version)};
        found.offset = fields_.number(head.version < 3 ? 4 : bytes_for(head.bytes));
        std::uint64_t count = 1;
        if (head.version == 1) {
            const std::uint64_t rank = fields_.number(1);
            if (rank > 4) fields_.wrong("describes a member of " + std::to_string(rank) + " dimensions");
            fields_.skip(3 + 4 + 4);
            for (std::uint64_t i = 0; i < 4; ++i) {
                const std::uint64_t extent = fields_.number(4);
                if (i < rank) count = checked_product(count, extent);
            }
        }
        try {
            found.described = read(depth + 1);
        } catch (BadStructure& bad) {
            if (bad.kind == BadStructure::Wrong::unsupported)
                bad.cause = "member " + shown(found.name) + ": " + bad.cause;
            throw;
        }
        const std::uint64_t bytes = checked_product(count, found.described.bytes);
        if (found.offset > head.bytes || bytes > head.bytes - found.offset)
            fields_.wrong("describes a member that leaves its element");
        if (count != 1) found.described.dimensions.push_back(static_cast<std::int64_t>(count));
        return found;
    }

    // The bytes of an element as they lie; what h5py writes for complex numbers is one.
    ElementType compound(const TypeHead& head, unsigned depth) {
        std::vector<TypeMember> members;
        for (std::uint64_t left = head.bits & 0xffff; left > 0; --left) members.push_back(member(head, depth));
        if (members.size() != 2 || members[0].name != "r" || members[1].name != "i") return raw_type(head.bytes);
        const DescribedType &real = members[0].described, &imaginary = members[1].described;
        const bool is_pair = real.type.kind == 'f' && real.type.name == imaginary.type.name &&
                             real.type.is_foreign_order == imaginary.type.is_foreign_order && real.dimensions.empty() &&
                             imaginary.dimensions.empty() && members[0].offset == 0 &&
                             members[1].offset == real.bytes && head.bytes == 2 * real.bytes;
        return is_pair ? pair_of(head, real) : raw_type(head.bytes);
    }

    DescribedType array(const TypeHead& head, unsigned depth) {
        const std::uint64_t rank = fields_.number(1);
        if (head.version < 3) fields_.skip(3);
        DescribedType found{.bytes = head.bytes};
        std::uint64_t count = 1;
        for (std::uint64_t i = 0; i < rank; ++i) {
            const std::uint64_t extent = fields_.number(4);
            count = checked_product(count, extent);
            found.dimensions.push_back(static_cast<std::int64_t>(extent));
        }
        if (head.version < 3) fields_.skip(4 * rank);
        const DescribedType inner = read(depth + 1);
        if (checked_product(count, inner.bytes) != head.bytes || count == 0)
            fields_.wrong("describes an array whose size is not that of its elements");
        found.type = inner.type;
        found.dimensions.insert(found.dimensions.end(), inner.dimensions.begin(), inner.dimensions.end());
        return found;
    }

    StructureFields& fields_;
};

}  // namespace

DescribedType read_type(StructureFields& fields) { return TypeReader(fields).read(0); }

}  // namespace penstock::formats
