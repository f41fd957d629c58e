//! What is sent (`>`), what comes back (`<`), and what is owed then.
//!
//! Sent: `Q` Query, `F` FunctionCall, `P B D d E C S` as in the protocol (`d` describes a portal), `c` the end of
//! a COPY's data, `1 3` a reply of our own. Back: the protocol's letters, `e` for an error. Owed is told in the
//! letters of what was sent, with `~` for skipping, `+` for a batch without its Sync, `?` for doubt.

use crate::{Entry, Ledger, Made, Owed};

fn owed(letter: char) -> Owed {
    match letter {
        'Q' => Owed::Query,
        'F' => Owed::FunctionCall,
        'P' => Owed::Parse,
        'B' => Owed::Bind,
        'D' => Owed::DescribeStatement,
        'd' => Owed::DescribePortal,
        'E' => Owed::Execute,
        'C' => Owed::Close,
        'S' => Owed::Sync,
        'c' => Owed::CopyEnd,
        '1' => Owed::Ours(Made::ParseComplete),
        '3' => Owed::Ours(Made::CloseComplete),
        _ => panic!("nobody sends {letter}"),
    }
}

fn letter(entry: &Entry) -> char {
    "QFPBDdECSc13".chars().find(|&letter| owed(letter) == entry.owed).expect("every kind has a letter")
}

fn back(ledger: &mut Ledger, letter: char) -> bool {
    match letter {
        'Z' => ledger.on_ready().is_ok(),
        'e' => {
            ledger.drop_eaten_syncs();
            ledger.on_error(|_| {}).is_some()
        }
        _ => {
            ledger.drop_eaten_syncs();
            ledger.on_reply(u8::try_from(letter).expect("a letter of the protocol")).is_ok()
        }
    }
}

#[track_caller]
fn check(script: &str, expected: &str) {
    let mut ledger = Ledger::default();
    let mut is_sound = true;
    for word in script.split(' ') {
        let (side, letters) = word.split_at(1);
        for letter in letters.chars() {
            match side {
                ">" => ledger.push(Entry::client(owed(letter))),
                _ => is_sound = is_sound && back(&mut ledger, letter),
            }
        }
    }
    let mut told: String = ledger.iter().map(letter).collect();
    let marks = [(ledger.is_skipping(), '~'), (ledger.is_unsynced() && !ledger.is_skipping(), '+')];
    told.extend(marks.iter().filter(|(is_so, _)| *is_so).map(|(_, mark)| mark));
    told.extend(ledger.is_doubtful().then_some('?'));
    told.extend((!is_sound).then_some('!'));
    assert_eq!(told, expected, "{script}");
}

#[test]
fn every_message_has_its_reply() {
    check(">Q <TDDC", "Q");
    check(">Q <TDDCZ", "");
    check(">Q <IZ", "");
    check(">F <VZ", "");
    check(">PBDdECS", "PBDdECS");
    check(">PBDdECS <12tTnDDC3", "S");
    check(">PBDdECS <12tnTs3Z", "");
    check(">SSS <ZZ", "S");
}

#[test]
fn a_reply_that_is_not_owed_is_unexpected() {
    for reply in "123tTnDCIsVGHWdcZe".chars() {
        check(&format!(">P <1{reply}"), "+!");
    }
    for (script, left) in [
        (">P <2", "P+!"),
        (">B <1", "B+!"),
        (">D <C", "D+!"),
        (">d <t", "d+!"),
        (">E <T", "E+!"),
        (">S <C", "S!"),
        (">F <C", "F!"),
        (">Q <1", "Q!"),
        (">Q <s", "Q!"),
        (">Q <d", "Q!"),
        (">P <Z", "P+!"),
    ] {
        check(script, left);
    }
}

#[test]
fn a_batch_is_open_until_its_sync() {
    check(">PB <12", "+");
    check(">PB <12 >S", "S");
    check(">PB <12 >Q <CZ", "");
    check(">S <Z >P", "P+");
}

#[test]
fn an_error_skips_to_the_sync() {
    check(">PBES <e", "S");
    check(">PBES <eZ", "");
    check(">PBESPS <1e", "SPS");
    check(">PBE <e", "~");
    check(">PBE <e >PQF", "~");
    check(">PBE <e >PQFS", "S");
    check(">PQS <e", "S");
    check(">Q <e", "Q");
    check(">Q <eZ", "");
    check(">F <e", "F");
    check(">S <e", "S");
}

#[test]
fn replies_of_our_own_wait_for_their_turn() {
    check(">P1S", "P1S");
    check(">P1S <1", "1S");
    check(">P13S <e", "S");
    let mut ledger = Ledger::default();
    for letter in "P13S".chars() {
        ledger.push(Entry::client(owed(letter)));
    }
    assert_eq!(ledger.pop_made(), None);
    assert!(back(&mut ledger, '1'));
    assert_eq!(ledger.pop_made().map(|(made, _)| made), Some(Made::ParseComplete));
    assert_eq!(ledger.pop_made().map(|(made, _)| made), Some(Made::CloseComplete));
    assert_eq!(ledger.pop_made(), None);
    check(">1", "1");
}

#[test]
fn copies_have_both_ends() {
    check(">Q <G", "Q");
    check(">Qc <GC", "Q");
    check(">Qc <GCZ", "");
    check(">Q <HddcCZ", "");
    check(">E <Hddc", "E+");
    check(">E <HddcC", "+");
    check(">Q <G >Q", "QQ");
    check(">Q <GC", "Q!");
    check(">Q <GZ", "Q!");
    check(">Q <HZ", "Q!");
    check(">Qcc <GCGCZ", "");
    check(">Q <WdddcCZ", "");
}

#[test]
fn ends_of_no_copy_are_ignored() {
    check(">c", "");
    check(">Qc <C", "Qc");
    check(">Qc <CZ", "");
    check(">QcQc <CZGC", "Q");
    check(">PcB <1", "B+");
    check(">P1cS <e", "S");
}

#[test]
fn syncs_before_the_end_of_a_copy_are_eaten() {
    check(">PBES <12G", "ES");
    check(">ES <G >cS", "EScS");
    check(">ES <G >cS <C", "S");
    check(">EScS <GCZ", "");
    check(">ESc <GC", "+");
    check(">ESSSc <GC", "+");
    check(">EcS <GC", "S");
    check(">EcS <GCZ", "");
    check(">QSc <GCZ", "");
}

#[test]
fn a_copy_that_fails_may_have_eaten_them_or_not() {
    check(">EcS <Ge", "S");
    check(">ES <Ge", "S?");
    check(">ES <GeZ", "");
    check(">ES <Ge >cS <Z", "S?");
    check(">ES <Ge >cS <ZZ", "");
    check(">ES <Ge >cS <Z >Q <I", "Q");
    check(">ES <Ge >cS <Z >Q <Z", "Q");
    check(">ES <Ge >cS <Z >PBS <12", "S");
    check(">ES <Ge >cS <Z >PBS <e", "S");
    check(">ESScS <GeZ", "ScS?");
    check(">ESScS <GeZ >Q <C", "Q");
    check(">ESScS <GeZZ", "S?");
    check(">ESScS <GeZZZ", "");
    check(">QSc <Ge", "QSc?");
    check(">QSc <GeZ", "Sc?");
    check(">QSc <GeZZ", "");
}

#[test]
fn doubts_alone_are_told_from_debts() {
    let mut ledger = Ledger::default();
    for letter in "ESS".chars() {
        ledger.push(Entry::client(owed(letter)));
    }
    assert!(back(&mut ledger, 'G') && !ledger.only_doubts_left());
    assert!(ledger.may_come_to_doubt());
    assert!(back(&mut ledger, 'e') && ledger.only_doubts_left());
    ledger.push(Entry::client(Owed::Query));
    assert!(!ledger.only_doubts_left());
    assert!(back(&mut ledger, 'C') && !ledger.may_come_to_doubt());
}

#[test]
fn an_error_gives_back_what_it_undoes_in_order() {
    let mut ledger = Ledger::default();
    for letter in "PB1CSE".chars() {
        ledger.push(Entry::client(owed(letter)));
    }
    let mut undone = String::new();
    let front = ledger.on_error(|entry| undone.push(letter(&entry))).expect("something is owed");
    assert_eq!((letter(&front), undone.as_str()), ('P', "PB1C"));
    assert!(Ledger::default().on_error(|_| {}).is_none());
}

#[test]
fn what_is_ours_is_swallowed() {
    let mut ledger = Ledger::default();
    ledger.push(Entry::ours(Owed::Query));
    ledger.push(Entry::client(Owed::Sync));
    assert!(ledger.owes_us());
    assert!(ledger.on_reply(b'C').expect("owed").swallow);
    assert_eq!(ledger.on_ready(), Ok(true));
    assert!(!ledger.owes_us());
    ledger.swallow_all();
    assert_eq!(ledger.on_ready(), Ok(true));
}

#[test]
fn only_the_end_of_a_batch_counts_batches() {
    let mut ledger = Ledger::default();
    for (letter, batch) in [('P', 0), ('c', 0), ('1', 0), ('S', 1), ('S', 2), ('Q', 3), ('F', 4), ('E', 4)] {
        ledger.push(Entry::client(owed(letter)));
        assert_eq!(ledger.batch(), batch, "{letter}");
    }
}
