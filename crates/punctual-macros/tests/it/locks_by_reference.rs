//! A borrowed lock right can be locked like the right itself: alone, and with others.

#[punctual::app(main = false)]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        a: u32,
        b: u32,
        seen: Vec<u32>,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        low::spawn().unwrap();
        (Shared { a: 0, b: 0, seen: Vec::new() }, Local {})
    }

    #[task(shared = [a, b, seen])]
    fn low(mut cx: low::Context) {
        for _ in 0..3 {
            (&mut cx.shared.a, &mut cx.shared.b).lock(|a, b| {
                *a += 1;
                *b += *a;
            });
        }
        let low::SharedResources { mut a, mut b, mut seen, .. } = cx.shared;
        (&mut a, &mut b, &mut seen).lock(|a, b, seen| seen.extend([*a, *b]));
        record(&mut seen, &mut b);
        record(seen, a);
        waits::spawn().unwrap();
    }

    #[task(priority = 2, shared = [a, b, seen])]
    async fn waits(mut cx: waits::Context) {
        let (a, seen) = (&mut cx.shared.a, &mut cx.shared.seen);
        punctual::delay(1.millis()).await;
        record(&mut *seen, &mut *a);
        (&mut *a, &mut cx.shared.b, seen).lock(|a, b, seen| seen.push(*a + *b));
        punctual::shutdown();
    }

    fn record(mut to: impl Mutex<T = Vec<u32>>, mut from: impl Mutex<T = u32>) {
        let value = from.lock(|value| *value);
        to.lock(|to| to.push(value));
    }

    #[shutdown(shared = [&seen])]
    fn shutdown(cx: shutdown::Context) {
        assert_eq!(*cx.shared.seen, [3, 6, 6, 3, 3, 9]);
    }
}

#[test]
fn runs() {
    app::run(punctual::Config::new().virtual_time()).unwrap();
}
