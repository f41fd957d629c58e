//! Claims about who rests, each as small as it can be, and a crew under loads that come and go.

use super::*;

const A: WorkerId = WorkerId(0);
const B: WorkerId = WorkerId(1);
const C: WorkerId = WorkerId(2);

fn crew(shares: &[u32]) -> Crew {
    let mut crew = Crew::new(shares.len());
    for (id, &share) in shares.iter().enumerate() {
        crew.report(WorkerId(id as u16), share);
    }
    crew
}

#[test]
fn two_that_have_the_work_of_one_can_be_one() {
    assert_eq!(crew(&[300, 300]).successor(B), Some(A));
    assert_eq!(crew(&[350, 300]).successor(B), None);
    assert_eq!(crew(&[500, 100, 300]).successor(C), Some(B));
    assert_eq!(crew(&[0]).successor(A), None);
}

#[test]
fn the_stand_in_has_the_work_of_both() {
    let mut crew = crew(&[300, 300, 100]);
    crew.rest(B, A);
    assert_eq!((crew.stand_in(B), crew.wards(A)), (Some(A), vec![B]));
    assert_eq!(crew.successor(A), None, "700 of a thousand is too much for one");
    assert_eq!(crew.successor(C), None);
}

#[test]
fn who_has_too_much_to_do_has_one_come_back() {
    let mut crew = crew(&[200, 200, 100]);
    crew.rest(B, A);
    crew.rest(C, A);
    assert_eq!(crew.relief(A), None);
    crew.report(A, 900);
    assert_eq!(crew.relief(A), Some(B));
    crew.come_back(B);
    assert_eq!((crew.stand_in(B), crew.wards(A)), (None, vec![C]));
    crew.report(B, 900);
    assert_eq!(crew.relief(B), None, "it stands in for nobody");
}

#[test]
fn nobody_rests_with_one_who_rests() {
    let mut crew = crew(&[100, 100, 100]);
    crew.rest(A, B);
    assert_eq!(crew.successor(C), Some(B));
    crew.hand_over(A, C);
    crew.rest(B, C);
    assert_eq!(crew.wards(C), [A, B]);
    assert_eq!(crew.successor(C), None);
}

#[test]
fn a_share_is_known_at_the_end_of_a_window() {
    let mut effort = Effort::new(Moment(1_000));
    assert_eq!(effort.slept(Moment(2_000), Moment(8_000)), None);
    assert_eq!(effort.slept(Moment(9_000), Moment(11_000)), Some(200));
    // A sleep longer than a window is a window of its own.
    assert_eq!(effort.slept(Moment(12_000), Moment(1_012_000)), Some(0));
    assert_eq!(effort.slept(Moment(1_022_000), Moment(1_022_000)), Some(1_000));
}

#[test]
fn who_could_be_spared_once_is_not_spare() {
    let mut effort = Effort::new(Moment(0));
    assert!(!effort.is_spare(Moment(10_000), true));
    assert!(!effort.is_spare(Moment(20_000), false));
    assert!(!effort.is_spare(Moment(30_000), true));
    assert!(!effort.is_spare(Moment(229_999), true));
    assert!(effort.is_spare(Moment(230_000), true));
}

/// Each worker's own sockets make so much work, in thousandths of a thread; whoever stands in does it too.
fn settle(crew: &mut Crew, own: &[u32]) -> usize {
    for changes in 0..100 {
        let done_by =
            |id: WorkerId| crew.wards(id).into_iter().chain([id]).map(|of| own[usize::from(of.0)]).sum();
        let shares: Vec<u32> = crew.ids().map(done_by).collect();
        let on_duty: Vec<_> = crew.ids().filter(|&id| crew.stand_in(id).is_none()).collect();
        assert!(!on_duty.is_empty(), "somebody is on duty");
        for &id in &on_duty {
            crew.report(id, shares[usize::from(id.0)].min(1_000));
        }
        let (mut relieved, mut retired) = (None, None);
        for &id in &on_duty {
            relieved = relieved.or(crew.relief(id));
            retired = retired.or(crew.successor(id).map(|to| (id, to)));
        }
        match (relieved, retired) {
            (Some(back), _) => crew.come_back(back),
            (None, Some((id, to))) => {
                crew.wards(id).into_iter().for_each(|ward| crew.hand_over(ward, to));
                crew.rest(id, to);
            }
            (None, None) => return changes,
        }
    }
    panic!("it never comes to rest with {own:?}");
}

#[test]
fn a_crew_comes_to_rest_under_any_steady_load() {
    let mut seed = 7_u64;
    let mut roll = |bound: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % bound
    };
    for _ in 0..2_000 {
        let count = 1 + roll(6) as usize;
        let mut crew = Crew::new(count);
        for _ in 0..5 {
            let top = 1 + roll(1_000);
            let own: Vec<u32> = (0..count).map(|_| roll(top) as u32).collect();
            settle(&mut crew, &own);
        }
    }
}

#[test]
fn little_work_leaves_one_and_much_leaves_all_on_duty() {
    let on_duty = |crew: &Crew| crew.ids().filter(|&id| crew.stand_in(id).is_none()).count();
    let mut crew = Crew::new(4);
    settle(&mut crew, &[100; 4]);
    assert_eq!(on_duty(&crew), 1);
    settle(&mut crew, &[900; 4]);
    assert_eq!(on_duty(&crew), 4);
    settle(&mut crew, &[250; 4]);
    assert_eq!(on_duty(&crew), 2);
}
