//! The app and the requests of the kernel, with the module `snd-dummy`: a card without sound.

#![cfg(all(target_pointer_width = "64", target_endian = "little"))]

use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use audio::card::{Card, CardError, FRAMES, Frame, LEAD_PERIODS};
use audio::kernel::KernelCard;
use audio::{Counts, app};
use punctual::Config;
use test_skip::{Need, skip};

const PERIOD: [Frame; FRAMES] = [[0; 2]; FRAMES];
/// Longer than the card plays what a start writes.
const PAUSE: Duration = Duration::from_millis(50);

/// Opens the card of `snd-dummy`; `None` without the module.
fn dummy() -> Option<KernelCard> {
    let cards = fs::read_to_string("/proc/asound/cards").unwrap_or_default();
    let line = cards.lines().find(|line| line.contains("[Dummy"))?;
    let number = line.split_whitespace().next()?.parse().ok()?;
    Some(KernelCard::open(number, 0).unwrap())
}

/// Writes what starts a card.
fn start(card: &mut KernelCard) {
    card.prepare().unwrap();
    for _ in 0..=LEAD_PERIODS {
        assert_eq!((card.reading(), card.write(&PERIOD)), (None, Ok(FRAMES)));
    }
}

#[test]
fn underrun_stops_card_until_prepared() {
    let _alone = test_skip::alone();
    let Some(mut card) = dummy() else {
        return skip(Need::System("the module snd-dummy"), "requests of the kernel to a sound card");
    };
    for _ in 0..2 {
        start(&mut card);
        thread::sleep(PAUSE);
        assert_eq!(card.write(&PERIOD), Err(CardError::Stopped));
        assert_eq!(card.read(&mut PERIOD.clone()), Err(CardError::Stopped));
        assert_eq!(card.reading(), None);
    }
}

#[test]
fn app_follows_card_of_kernel() {
    let _alone = test_skip::alone();
    let Some(card) = dummy() else {
        return skip(Need::System("the module snd-dummy"), "the app with a sound card of the kernel");
    };
    let counts = Arc::<Counts>::default();
    let config = Config::new().until(Duration::from_secs(3));
    let report = app::run(config, Box::new(card), true, Arc::clone(&counts)).unwrap();
    assert_eq!(counts.failure.get(), None);
    assert!(counts.periods.load(Relaxed) > 0, "{counts:?}");
    // A busy machine may cause underruns, after which the app measures the drift again.
    let clock = report.task("exchange").and_then(|task| task.clock).unwrap();
    let has_drift = clock.drift_ppb.is_some_and(|ppb| ppb.abs() < 100_000);
    assert!(has_drift || counts.underruns.load(Relaxed) > 0, "{clock:?}, {counts:?}");
}
