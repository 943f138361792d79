//! Types of resources, messages and contexts.

runs! {
    not_send_in_idle_alone, not_sync_at_one_level, generic_types, generic_helpers,
    higher_ranked_types, context_lifetimes
}

mod not_send_in_idle_alone {
    //! Shared resources used only by `idle` stay on its thread.

    #[punctual::app]
    mod app {
        use std::rc::Rc;

        use punctual::prelude::*;

        #[shared]
        struct Shared {
            of_idle: Rc<u32>,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared { of_idle: Rc::new(1) }, Local {})
        }

        #[idle(shared = [of_idle])]
        fn idle(mut cx: idle::Context) {
            cx.shared.of_idle.lock(|of_idle| *of_idle = Rc::new(**of_idle + 1));
            punctual::shutdown();
        }
    }
}

mod not_sync_at_one_level {
    //! Resources that tasks of one level share by `&` are seen by one of them at a time.

    #[punctual::app]
    mod app {
        use std::cell::Cell;

        #[shared]
        struct Shared {
            count: Cell<u32>,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            one::spawn().unwrap();
            (Shared { count: Cell::new(0) }, Local {})
        }

        #[task(shared = [&count])]
        fn one(cx: one::Context) {
            cx.shared.count.set(1);
            other::spawn().unwrap();
        }

        #[task(shared = [&count])]
        fn other(cx: other::Context) {
            assert_eq!(cx.shared.count.get(), 1);
            punctual::shutdown();
        }
    }
}

mod private_types {
    #![deny(private_interfaces, private_bounds)]

    #[punctual::app(main = false)]
    pub mod app {
        use std::os::unix::net::UnixDatagram;

        #[derive(Debug, PartialEq)]
        struct Message(u32);

        struct State(u32);

        struct Source(UnixDatagram);

        impl std::os::fd::AsFd for Source {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                self.0.as_fd()
            }
        }

        #[shared]
        struct Shared {
            state: State,
        }

        #[local]
        struct Local {
            own: State,
            source: Source,
        }

        struct Start(u32);

        #[init]
        fn init(_: init::Context, start: u32) -> (Shared, Local) {
            let start = Start(start);
            tick::spawn(Message(start.0), [Message(2)]).unwrap();
            let (source, _) = UnixDatagram::pair().unwrap();
            (Shared { state: State(0) }, Local { own: State(0), source: Source(source) })
        }

        #[task(shared = [&state], local = [own, more: State = State(3)])]
        fn tick(cx: tick::Context, message: Message, [other]: [Message; 1]) {
            cx.local.own.0 += message.0 + other.0;
            assert_eq!((cx.shared.state.0, cx.local.own.0, cx.local.more.0), (0, 3, 3));
            punctual::shutdown();
        }

        #[task(binds = source, local = [source])]
        fn on_source(_: on_source::Context) {}
    }

    #[test]
    fn runs() {
        app::run(punctual::Config::from_env(), 1).unwrap();
    }
}

mod generic_types {
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
}

mod generic_helpers {
    #[punctual::app]
    mod app {
        use punctual::prelude::*;

        fn add(mut counter: impl Mutex<T = u32>, n: u32) -> u32 {
            counter.lock(|counter| {
                *counter += n;
                *counter
            })
        }

        fn twice<M: Mutex<T = u32>>(counter: &mut M) {
            counter.lock(|counter| *counter *= 2);
        }

        fn whole(shared: &mut low::SharedResources<'_>) -> u32 {
            twice(&mut shared.counter);
            shared.counter.lock(|counter| shared.other.lock(|other| *counter + *other))
        }

        #[shared]
        struct Shared {
            counter: u32,
            other: u32,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            low::spawn().unwrap();
            (Shared { counter: 1, other: 5 }, Local {})
        }

        #[task(shared = [counter, other])]
        fn low(mut cx: low::Context) {
            assert_eq!(whole(&mut cx.shared), 7);
            high::spawn().unwrap();
            assert_eq!(add(cx.shared.counter, 1), 7);
            punctual::shutdown();
        }

        #[task(priority = 2, shared = [counter])]
        fn high(mut cx: high::Context) {
            twice(&mut cx.shared.counter);
            add(cx.shared.counter, 2);
        }
    }
}

mod higher_ranked_types {
    //! Function pointers with references are ordinary values, in resources and in messages.

    #[punctual::app]
    mod app {
        use punctual::prelude::*;

        type Reads = for<'a> fn(&'a u32) -> &'a u32;

        fn same(n: &u32) -> &u32 {
            n
        }

        #[shared]
        struct Shared {
            locked: for<'a> fn(&'a u32) -> &'a u32,
            seen: Box<dyn for<'a> Fn(&'a u32) -> &'a u32 + Send + Sync>,
            alias: Reads,
        }

        #[local]
        struct Local {
            own: for<'a, 'b> fn(&'a u32, &'b u32),
            of_idle: for<'a> fn(&'a u32) -> &'a u32,
        }

        #[init(local = [declared: for<'a> fn(&'a u32) -> &'a u32 = same])]
        fn init(_: init::Context) -> (Shared, Local) {
            takes::spawn(same, Box::new(|_| ())).unwrap();
            waits::spawn(same).unwrap();
            (
                Shared { locked: same, seen: Box::new(same), alias: same },
                Local { own: |_, _| (), of_idle: same },
            )
        }

        #[idle(shared = [alias], local = [of_idle])]
        fn idle(_: idle::Context) {}

        #[task(shared = [locked, alias, &seen], local = [own, declared: for<'a> fn(&'a u32) -> &'a u32 = same])]
        fn takes(
            mut cx: takes::Context,
            f: for<'a> fn(&'a u32) -> &'a u32,
            _: Box<dyn for<'a> Fn(&'a u32) + Send>,
        ) {
            assert_eq!(cx.shared.locked.lock(|locked| *locked(&2)), *f(&2));
            assert_eq!(*(cx.shared.seen)(&1), *(cx.local.declared)(&1));
            (cx.local.own)(&1, &2);
        }

        #[task(priority = 2, shared = [locked])]
        async fn waits(_: waits::Context, f: for<'a> fn(&'a u32) -> &'a u32) {
            assert_eq!(*f(&1), 1);
            punctual::delay(1.millis()).await;
            punctual::shutdown();
        }
    }
}

mod context_lifetimes {
    #[punctual::app]
    mod app {
        use punctual::prelude::*;

        #[shared]
        struct Shared {
            names: Vec<&'static str>,
            limit: usize,
        }

        #[local]
        struct Local {
            list: Vec<u32>,
        }

        #[init(local = [buffer: [u8; 4] = [0; 4]])]
        fn init(cx: init::Context<'static>) -> (Shared, Local) {
            let for_ever: &'static mut [u8; 4] = cx.local.buffer;
            for_ever[0] = 1;
            tick::spawn("tick").unwrap();
            (Shared { names: vec![], limit: 4 }, Local { list: vec![1, 2] })
        }

        #[idle(local = [buffer: [u8; 4] = [0; 4]])]
        fn idle(cx: idle::Context<'_>) {
            let for_ever: &'static mut [u8; 4] = cx.local.buffer;
            for_ever[0] = 1;
        }

        fn first(list: &mut [u32]) -> &mut u32 {
            &mut list[0]
        }

        fn own<'a>(cx: tick::Context<'a>) -> (tick::SharedResources<'a>, &'a mut Vec<u32>) {
            (cx.shared, cx.local.list)
        }

        fn limit<'a>(shared: &tick::SharedResources<'a>) -> &'a usize {
            shared.limit
        }

        #[task(shared = [names, &limit], local = [list])]
        fn tick(cx: tick::Context<'_>, name: &'static str) {
            let (mut shared, list) = own(cx);
            *first(list) += 1;
            shared.names.lock(|names| names.push(name));
            assert_eq!((list[0], *limit(&shared)), (2, 4));
            punctual::shutdown();
        }

        #[task(priority = 2, shared = [names, &limit])]
        fn tock(
            tock::Context { shared: tock::SharedResources { mut names, limit, .. }, .. }: tock::Context<'_>,
        ) {
            names.lock(|names| names.truncate(*limit));
        }
    }
}
