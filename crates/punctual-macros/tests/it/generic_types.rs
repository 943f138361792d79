#[punctual::app]
mod app {
    use punctual::prelude::*;
    use std::collections::HashMap;
    use std::marker::PhantomData;

    const SIZE: usize = 3;

    struct Ring<T, const N: usize>([T; N]);

    struct Tagged<'a, T: ?Sized, Tag = ()>(&'a T, PhantomData<Tag>);

    trait Shape {
        type Side;
    }

    struct Square;

    impl Shape for Square {
        type Side = u8;
    }

    #[shared]
    struct Shared {
        ring: Ring<Option<(u8, i64)>, 4>,
        sized: Ring<u8, { SIZE + 1 }>,
        side: <Square as Shape>::Side,
        table: HashMap<u8, Vec<[u8; SIZE]>>,
        tagged: Tagged<'static, str>,
        boxed: Box<dyn FnMut(u32) -> u32 + Send>,
        fixed: Ring<&'static str, 1>,
    }

    #[local]
    struct Local {
        ring: Ring<u8, SIZE>,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        tick::spawn(Ring([1, 2]), Tagged("message", PhantomData)).ok().unwrap();
        let shared = Shared {
            ring: Ring([None; 4]),
            sized: Ring([0; SIZE + 1]),
            side: 1,
            table: HashMap::from([(1, vec![[0; SIZE]])]),
            tagged: Tagged("resource", PhantomData),
            boxed: Box::new(|n| n + 1),
            fixed: Ring(["fixed"]),
        };
        (shared, Local { ring: Ring([0; SIZE]) })
    }

    #[task(
        shared = [ring, sized, side, table, tagged, boxed, &fixed],
        local = [ring, own: Ring<u8, { 1 + 1 }> = Ring([5; 2]), map: HashMap<u8, u8> = HashMap::new()],
    )]
    fn tick(mut cx: tick::Context, message: Ring<u8, 2>, tagged: Tagged<'static, str, u8>) {
        cx.shared.ring.lock(|ring| ring.0[0] = Some((message.0[0], 1)));
        cx.local.ring.0[0] += cx.local.own.0[1];
        cx.local.map.insert(1, 2);
        assert_eq!(cx.shared.boxed.lock(|add| add(1)), 2);
        (cx.shared.sized, cx.shared.side).lock(|sized, side| sized.0[3] += *side);
        assert_eq!(cx.shared.table.lock(|table| table[&1].len()), 1);
        cx.shared.tagged.lock(|resource| assert_ne!(resource.0, tagged.0));
        assert_eq!(cx.shared.fixed.0, ["fixed"]);
        punctual::shutdown();
    }

    #[task(priority = 2, shared = [ring, table, boxed, &fixed])]
    fn tock(_: tock::Context) {}
}

#[test]
fn runs() {
    assert_eq!(main(), std::process::ExitCode::SUCCESS);
}
