// Profiles are read as they were written, and an error in one is reported with its line.
#include "penstock/profile.hpp"

#include <gtest/gtest.h>

#include "penstock/error.hpp"

namespace penstock {
namespace {

Profile example() {
    Profile profile;
    profile.name = "p.csv";
    profile.measured = "2026-11-21";
    profile.machine = {"AMD EPYC 9575F", 16, 135'000'000'000, 4096, "x86_64", "6.8.0-60-generic", "NVIDIA H200", 13000};
    profile.place = {"ext4", "rw,relatime", "vda 134217728"};
    ProfileRow row{Direction::read, true, PathKind::uring_buffered, MemoryKind::managed, FirstTouch::cpu, false, 8, 3,
                   kMiB, 4 * kGiB, 0.0812345678901234, 0, 5};
    profile.rows.push_back(row);
    row.direction = Direction::write;
    row.synced_seconds = 1.0 / 3.0;
    profile.rows.push_back(row);
    return profile;
}

std::string cause(const std::string& text) {
    try {
        parse_profile(text, "p.csv");
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
        EXPECT_EQ(error.info().file, "p.csv");
        return error.info().cause;
    }
    return "accepted";
}

std::string with(const std::string& what, const std::string& instead) {
    std::string text = profile_text(example());
    const std::size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return text.replace(at, what.size(), instead);
}

TEST(Profile, is_read_as_it_was_written) {
    EXPECT_EQ(parse_profile(profile_text(example()), "p.csv"), example());
}

TEST(Profile, line_ends_of_other_systems_notes_and_empty_lines_do_not_matter) {
    std::string text = with("# cpu:", "# a note without a key\n\n# cpu:");
    std::string other;
    for (char c : text) other += c == '\n' ? "\r\n" : std::string(1, c);
    EXPECT_EQ(parse_profile(other, "p.csv"), example());
}

TEST(Profile, options_of_a_mount_name_no_machines_users_or_folders) {
    EXPECT_EQ(public_mount_options("rw,relatime,rw,discard,relatime"), "rw,relatime,discard");
    EXPECT_EQ(public_mount_options("rw,vers=4.2,nconnect=8,clientaddr=10.0.0.8,addr=10.0.0.7,mountaddr=10.0.0.7"),
              "rw,vers=4.2,nconnect=8");
    EXPECT_EQ(public_mount_options("rw,lowerdir=/a:/b,lowerdir+=/c,upperdir=/d,,addrs=1"), "rw,addrs=1");
    EXPECT_EQ(public_mount_options(""), "");
    EXPECT_EQ(public_mount_options("addr=fe80::1"), "");
}

TEST(Profile, of_older_versions_lose_addresses_when_they_are_read_and_are_still_of_the_same_place) {
    const Profile old = parse_profile(with("rw,relatime", "rw,relatime,rw,addr=10.0.0.7"), "p.csv");
    EXPECT_EQ(old, example());
    EXPECT_EQ(difference(old.place, example().place), "");
    EXPECT_EQ(profile_text(old).find("10.0.0.7"), std::string::npos);
    const Profile other = parse_profile(with("rw,relatime", "rw,noatime,addr=10.0.0.7"), "p.csv");
    EXPECT_NE(difference(other.place, example().place).find("mount options rw,noatime there"), std::string::npos);
}

TEST(Profile, what_is_wrong_is_named_with_its_line) {
    EXPECT_EQ(cause(""), "it is empty");
    EXPECT_NE(cause("\x7f" "ELF garbage").find("line 1"), std::string::npos);
    EXPECT_NE(cause(with("profile, version 1", "profile, version 2")).find("line 1"), std::string::npos);
    EXPECT_EQ(cause(with("# cores: 16", "# cores: many")), "line 4: cores is 'many'");
    EXPECT_NE(cause(with("direction,cached", "cached,direction")).find("line 14: the columns are not"),
              std::string::npos);
    EXPECT_EQ(cause(with("read,yes", "append,yes")), "line 15: there is no direction 'append'");
    EXPECT_EQ(cause(with("read,yes", "read,maybe")), "line 15: cached is 'maybe', neither yes nor no");
    EXPECT_EQ(cause(with("uring-buffered", "warp")), "line 15: there is no path 'warp'");
    EXPECT_EQ(cause(with("uring-buffered", "auto")), "line 15: path 'auto' is none that is measured");
    EXPECT_EQ(cause(with("managed", "hbm")), "line 15: there is no kind of memory 'hbm'");
    EXPECT_EQ(cause(with(",8,3,", ",513,3,")), "line 15: workers is '513'");
    EXPECT_EQ(cause(with(",0.0812345678901234,", ",nan,")), "line 15: seconds is 'nan'");
    EXPECT_EQ(cause(with(",0.0812345678901234,", ",0,")), "line 15: seconds is '0'");
    EXPECT_EQ(cause(with(",0.0812345678901234,", ",")), "line 15: a row has 13 cells");
    EXPECT_EQ(cause(with("read,", "read,,")), "line 15: a row has 13 cells");
}

TEST(Profile, without_measurements_is_none) {
    Profile empty = example();
    empty.rows.clear();
    EXPECT_NE(cause(profile_text(empty)).find("no measurements"), std::string::npos);
}

TEST(Profile, text_of_the_system_cannot_add_lines) {
    Profile odd = example();
    odd.place.disk = "evil\n# cores: 1\nread,yes";
    const Profile back = parse_profile(profile_text(odd), "p.csv");
    EXPECT_EQ(back.machine.cores, 16u);
    EXPECT_EQ(back.rows.size(), odd.rows.size());
}

TEST(Profile, machines_and_places_that_differ_say_in_what) {
    MachineIdentity here = example().machine;
    EXPECT_EQ(difference(example().machine, here), "");
    here.memory_bytes += here.memory_bytes / 100;  // kernels reserve a little memory for themselves
    EXPECT_EQ(difference(example().machine, here), "");
    here.kernel = "6.9.1";
    here.driver = 12090;
    EXPECT_EQ(difference(example().machine, here),
              "kernel 6.8.0-60-generic there, 6.9.1 here; driver 13000 there, 12090 here");
    here = example().machine;
    here.memory_bytes *= 2;
    EXPECT_NE(difference(example().machine, here).find("memory bytes"), std::string::npos);
    PlaceIdentity place = example().place;
    place.disk = "";
    EXPECT_EQ(difference(example().place, place), "disk vda 134217728 there, none here");
}

}  // namespace
}  // namespace penstock
