//! Up to 16 resources are locked at once.

#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        a: u32,
        b: u32,
        c: u32,
        d: u32,
        e: u32,
        f: u32,
        g: u32,
        h: u32,
        i: u32,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7, h: 8, i: 9 }, Local {})
    }

    #[idle(shared = [a, b, c, d, e, f, g, h, i])]
    fn idle(cx: idle::Context) {
        let s = cx.shared;
        let sum = (s.a, s.b, s.c, s.d, s.e, s.f, s.g, s.h, s.i)
            .lock(|a, b, c, d, e, f, g, h, i| *a + *b + *c + *d + *e + *f + *g + *h + *i);
        assert_eq!(sum, 45);
        punctual::shutdown();
    }
}

#[test]
fn runs() {
    assert_eq!(main(), std::process::ExitCode::SUCCESS);
}
