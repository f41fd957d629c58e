//! Cancel keys.

use super::*;

fn key(bench: &mut Bench, entropy: u8, is_long: bool) -> (ClientId, CancelKey) {
    let (id, _) = bench.member("app", "ann");
    let key = bench.hub.issue_key(id, &[entropy; 36], is_long).expect("it has entered");
    (id, key)
}

fn bench() -> Bench {
    Bench::new("[databases]\napp = host=h\n")
}

#[test]
fn key_finds_its_client() {
    let mut bench = bench();
    let (one, first) = key(&mut bench, 1, false);
    let (two, second) = key(&mut bench, 2, true);
    assert_eq!((first.secret().len(), second.secret().len()), (4, 32));
    assert_eq!(bench.hub.find_by_key(first.process_id, first.secret()).map(|found| found.0), Some(one));
    assert_eq!(bench.hub.find_by_key(second.process_id, second.secret()).map(|found| found.0), Some(two));
}

#[test]
fn numbers_are_unique_even_where_the_entropy_is_not() {
    let mut bench = bench();
    let (_, first) = key(&mut bench, 0, false);
    let (_, second) = key(&mut bench, 0, false);
    assert!(first.process_id != 0 && second.process_id != 0 && first.process_id != second.process_id);
}

#[test]
fn numbers_are_those_of_no_process_and_fit_an_int4() {
    let mut bench = bench();
    for first in [[0; 4], [0, 0, 0x30, 0x39], [0, 0x40, 0, 0], [0x80, 0, 0, 1], [0xff; 4]] {
        let (id, _) = bench.member("app", "ann");
        let mut entropy = [7; 36];
        entropy[..4].copy_from_slice(&first);
        let key = bench.hub.issue_key(id, &entropy, false).expect("it has entered");
        assert!(key.process_id > 4_194_304, "{}", key.process_id);
        assert!(i32::try_from(key.process_id).is_ok(), "{} is no int4", key.process_id);
    }
}

#[test]
fn wrong_key_finds_nobody() {
    let mut bench = bench();
    let (_, good) = key(&mut bench, 9, true);
    let found = |process_id, key: &[u8]| bench.hub.find_by_key(process_id, key).is_some();
    assert!(found(good.process_id, &[9; 32]));
    for wrong in [&[][..], &[9; 4], &[9; 31], &[9; 33], &[9; 256], &[8; 32]] {
        assert!(!found(good.process_id, wrong), "{wrong:?}");
    }
    assert!(!found(good.process_id + 1, &[9; 32]) && !found(0, &[]));
}

#[test]
fn key_dies_with_its_client() {
    let mut bench = bench();
    let (id, key) = key(&mut bench, 3, false);
    bench.hub.leave(bench.now, id);
    assert!(bench.hub.find_by_key(key.process_id, key.secret()).is_none());
    assert!(bench.hub.issue_key(id, &[1; 36], false).is_none());
}

#[test]
fn debug_output_has_no_key() {
    let (_, key) = key(&mut bench(), 0xAB, true);
    assert_eq!(format!("{key:?}"), format!("CancelKey({}, ..)", key.process_id));
}
