// A line of text that device code makes: texts, whole numbers, hexadecimal ones and floating ones, one after another.
//
// It replaces format strings, which NVRTC has no library for and no compiler checks on a GPU. A line has room for a
// number of characters; what does not fit is left off. Floating numbers are those of printf's %g: six digits, or as
// many as `digits` asks for. Its last digit may differ from printf's by one where more than 6 are asked for.
#pragma once

#include "penstock/ondevice/platform.hpp"

namespace penstock::ondevice {

struct Hex {
    u64 value;
};
// As %x.
PENSTOCK_ONDEVICE Hex hex(u64 value) { return Hex{value}; }

constexpr int most_digits = 15;
struct Digits {
    double value;
    int count;
};
// As %.*g with `count` digits, 1 to most_digits.
PENSTOCK_ONDEVICE Digits digits(double value, int count) {
    return Digits{value, count < 1 ? 1 : count > most_digits ? most_digits : count};
}

template <u32 most>
class TextLine {
  public:
    PENSTOCK_ONDEVICE const char* text() const { return text_; }
    PENSTOCK_ONDEVICE u32 length() const { return length_; }

    // Ends the line. There is always room for that. Requires: it is done once.
    PENSTOCK_ONDEVICE void end() { text_[length_++] = '\n'; }

    PENSTOCK_ONDEVICE void add(char one) {
        if (length_ < most) text_[length_++] = one;
    }
    PENSTOCK_ONDEVICE void add(const char* text) {
        for (; *text != '\0'; ++text) add(*text);
    }
    PENSTOCK_ONDEVICE void add(unsigned long long value) { add_whole(value, 10); }
    PENSTOCK_ONDEVICE void add(unsigned long value) { add_whole(value, 10); }
    PENSTOCK_ONDEVICE void add(unsigned value) { add_whole(value, 10); }
    PENSTOCK_ONDEVICE void add(long long value) {
        if (value < 0) add('-');
        add_whole(value < 0 ? 0 - static_cast<u64>(value) : static_cast<u64>(value), 10);
    }
    PENSTOCK_ONDEVICE void add(long value) { add(static_cast<long long>(value)); }
    PENSTOCK_ONDEVICE void add(int value) { add(static_cast<long long>(value)); }
    PENSTOCK_ONDEVICE void add(Hex number) { add_whole(number.value, 16); }
    PENSTOCK_ONDEVICE void add(float value) { add(Digits{value, 6}); }
    PENSTOCK_ONDEVICE void add(double value) { add(Digits{value, 6}); }
    PENSTOCK_ONDEVICE void add(Digits number) {
        double value = number.value;
        if (negative(value)) {
            add('-');
            value = -value;
        }
        if (value != value) return add("nan");
        if (value > 1.7976931348623157e308) return add("inf");
        if (value == 0) return add('0');
        int exponent = 0;
        const u64 whole = rounded(value, number.count, exponent);
        if (exponent < -4 || exponent >= number.count)
            add_scientific(whole, number.count, exponent);
        else
            add_fixed(whole, number.count, exponent);
    }

  private:
    static PENSTOCK_ONDEVICE bool negative(double value) {
#if defined(__CUDA_ARCH__)
        return __double_as_longlong(value) < 0;
#else
        return __builtin_signbit(value) != 0;
#endif
    }

    PENSTOCK_ONDEVICE void add_whole(u64 value, u32 base) {
        char reversed[20];
        u32 count = 0;
        do {
            const u32 digit = static_cast<u32>(value % base);
            reversed[count++] = static_cast<char>(digit < 10 ? '0' + digit : 'a' + digit - 10);
            value /= base;
        } while (value != 0);
        while (count != 0) add(reversed[--count]);
    }

    // The first `count` digits of value > 0, rounded to even, and the power of ten of the first of them. Powers of ten
    // up to 1e22 are exact, so one rounding is made where value and result lie within these.
    static PENSTOCK_ONDEVICE u64 rounded(double value, int count, int& exponent) {
        double low = 1;
        for (int i = 1; i < count; ++i) low *= 10;
        exponent = count - 1;
        for (; value >= 1e22; exponent += 16) value /= 1e16;
        for (; value < 1e-7; exponent -= 16) value *= 1e16;
        double power = 1;
        if (value >= low * 10) {
            for (; value / power >= low * 10; ++exponent) power *= 10;
            value /= power;
        } else {
            for (; value * power < low; --exponent) power *= 10;
            value *= power;
        }
        u64 whole = static_cast<u64>(value);
        const double rest = value - static_cast<double>(whole);
        if (rest > 0.5 || (rest == 0.5 && whole % 2 == 1)) ++whole;
        if (static_cast<double>(whole) < low * 10) return whole;
        ++exponent;
        return whole / 10;
    }

    // The digits of `whole`, the most important first, without zeros at the end. Returns how many there are.
    static PENSTOCK_ONDEVICE int significant(u64 whole, int count, char* found) {
        for (int at = count; at-- > 0; whole /= 10) found[at] = static_cast<char>('0' + whole % 10);
        while (count > 1 && found[count - 1] == '0') --count;
        return count;
    }

    PENSTOCK_ONDEVICE void add_scientific(u64 whole, int count, int exponent) {
        char found[most_digits] = {};
        const int there = significant(whole, count, found);
        add(found[0]);
        if (there > 1) add('.');
        for (int at = 1; at < there; ++at) add(found[at]);
        add('e');
        add(exponent < 0 ? '-' : '+');
        const u32 size = static_cast<u32>(exponent < 0 ? -exponent : exponent);
        if (size < 10) add('0');
        add_whole(size, 10);
    }

    PENSTOCK_ONDEVICE void add_fixed(u64 whole, int count, int exponent) {
        char found[most_digits] = {};
        const int there = significant(whole, count, found);
        if (exponent < 0) add("0.");
        for (int zero = -1; zero > exponent; --zero) add('0');
        const int last = there > exponent ? there : exponent + 1;
        for (int at = 0; at < last; ++at) {
            if (at == exponent + 1 && exponent >= 0) add('.');
            add(at < there ? found[at] : '0');
        }
    }

    char text_[most + 1];
    u32 length_ = 0;
};

}  // namespace penstock::ondevice
