//! What texts share a fingerprint, and what is judged in their place.

use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(text: &str, wanted: &str) {
    assert_eq!(masked(text.as_bytes()).as_deref(), Ok(wanted), "{text}");
}

#[track_caller]
fn unfit(text: &str, why: Unfit) {
    assert_eq!(masked(text.as_bytes()), Err(why), "{text}");
}

fn key() -> Key {
    Key::new(*b"0123456789abcdef")
}

#[test]
fn the_hash_is_the_one_of_its_authors() {
    // The one vector that is published for this variant: key 0 to 15, no bytes.
    let key = Key::new(std::array::from_fn(|at| at as u8));
    let published = [231, 126, 188, 178, 39, 136, 165, 190, 253, 98, 219, 106, 221, 48, 48, 1];
    let [first, second] = Sip::new(key.0).finish().map(u64::to_le_bytes);
    assert_eq!([first, second].concat(), published);
    // However the bytes come, the hash is theirs.
    let text: Vec<u8> = (0..64).collect();
    let mut seen = std::collections::HashSet::new();
    for length in 0..=text.len() {
        let hash_by = |step: usize| {
            let mut sip = Sip::new(key.0);
            for part in text[..length].chunks(step) {
                let mut word = [0; 8];
                word[..part.len()].copy_from_slice(part);
                sip.push(u64::from_le_bytes(word), part.len() as u32);
            }
            sip.finish()
        };
        let hash = hash_by(1);
        assert!((2..=8).all(|step| hash_by(step) == hash), "{length}");
        assert!(seen.insert(hash), "{length}");
    }
}

#[test]
fn literals_are_left_out_and_names_are_not() {
    check(
        "SELECT abalance FROM pgbench_accounts WHERE aid = 4711;",
        "select abalance from pgbench_accounts where aid = 1",
    );
    check("select 'a', \"B c\".D, E'\\n', $tag$x$tag$ from t", "select '' , \"B c\" . d , '' from t");
    check("select 1.5, .5, 1e3, 1.e-3, 7, x'1f', b'01', n'x'", "select 1.0 , 1 , x'' , b'' , ''");
    check(
        "select $1::int, $2 from t where a in ($3, $4,$5)",
        "select $1 :: int , $1 from t where a in ( $1 )",
    );
    check("select -1, a<-1, a <= 1", "select - 1 , a <- 1 , a <= 1");
}

#[test]
fn a_list_of_literals_is_its_first() {
    check(
        "select * from t where a in (1, 2, 3) or b in ('x' , 'y')",
        "select * from t where a in ( 1 ) or b in ( '' )",
    );
    check("select f(1, 'a', 2)", "select f ( 1 , '' , 1 )");
    check("select 1, 2 + nextval('s')", "select 1 + nextval ( '' )");
    check("select 1, a, 2, 3", "select 1 , a , 1");
    check("select (1,)", "select ( 1 , )");
    check("select 1,", "select 1 ,");
    check("select 1,,2", "select 1 , , 1");
}

#[test]
fn operators_are_what_stands_side_by_side() {
    check(
        "select a<=b, a < = b, a->>'x', a#>>'{}', t.*, f(a:=1, b=>2)",
        "select a <= b , a < = b , a ->> '' , a #>> '' , t .* , f ( a := 1 , b => 1 )",
    );
    check("select a</**/=b", "select a < = b");
    check("select a-- x\n-b, a/* */*b", "select a - b , a * b");
    check("select a[1:2]", "select a [ 1 : 1 ]");
}

#[test]
fn what_does_not_begin_as_a_read_is_not_looked_at() {
    for text in [
        "insert into t values (1)",
        "",
        ";",
        "  -- x",
        "update t set a=1",
        "set a=1",
        "begin",
        "copy t to stdout",
        "\"select\" 1",
    ] {
        unfit(text, Unfit::Command);
    }
}

#[test]
fn several_statements_are_none() {
    unfit("select 1; select 2", Unfit::Several);
    unfit("select 1;; delete from t", Unfit::Several);
    check("select 1 ; ; -- end", "select 1");
}

#[test]
fn what_depends_on_the_session_is_not_read() {
    for text in [
        r"select 'a\', b",
        r"select 'a\\b'",
        "select ü",
        "select \"ü\"",
        "select E'ü\\n'",
        "select U&\"a\"",
        "select 1a",
        "select 0x1f",
        "select 1_000",
        "select $1a",
        "select 'open",
        "select /* open",
        "select \\d",
        "select {a}",
    ] {
        unfit(text, Unfit::Unreadable);
    }
    check("select 'ü', E'ü', /* ü */ $$ü$$", "select ''");
}

#[test]
fn what_is_too_long_or_too_deep_is_not_looked_at() {
    unfit(&format!("select '{}'", "x".repeat(TEXT_BYTES_MAX)), Unfit::TooLong);
    unfit(&format!("select {}a", "a+".repeat(TOKENS_MAX / 2)), Unfit::TooLong);
    unfit(&format!("select {}1", "(".repeat(DEPTH_MAX + 1)), Unfit::TooLong);
    check(&format!("select {}1", "1, ".repeat(TOKENS_MAX)), "select 1");
}

#[test]
fn other_keys_make_other_fingerprints() {
    let other = Key::new(*b"0123456789abcdeg");
    let of = |text: &str, key: &Key| fingerprint(text.as_bytes(), key);
    assert_eq!(of("select 1", &key()), of("SELECT  2 ;", &key()));
    assert_ne!(of("select 1", &key()), of("select 1", &other));
    assert_ne!(of("select a", &key()), of("select b", &key()));
    assert_ne!(of("select a b", &key()), of("select a, b", &key()));
    assert_eq!(of("delete from t", &key()), None);
}

proptest! {
    #[test]
    fn texts_share_a_fingerprint_if_and_only_if_they_share_what_is_judged(
        one in "(select|with|\\() ?[a-c0-9'\"$;,()<=.\\- ]{0,24}",
        two in "(select|with|\\() ?[a-c0-9'\"$;,()<=.\\- ]{0,24}",
    ) {
        let key = key();
        let (first, second) = (masked(one.as_bytes()), masked(two.as_bytes()));
        prop_assert_eq!(first.is_ok(), fingerprint(one.as_bytes(), &key).is_some());
        if let (Ok(first), Ok(second)) = (first, second) {
            prop_assert!(first.is_ascii());
            let same = fingerprint(one.as_bytes(), &key) == fingerprint(two.as_bytes(), &key);
            prop_assert_eq!(first == second, same);
        }
    }

    #[test]
    fn what_is_masked_stays_as_it_is(text in "select [a-c0-9'\"$,()<=.\\- ]{0,40}") {
        if let Ok(once) = masked(text.as_bytes()) {
            let again = masked(once.as_bytes());
            prop_assert_eq!(again.as_deref(), Ok(once.as_str()));
        }
    }
}
