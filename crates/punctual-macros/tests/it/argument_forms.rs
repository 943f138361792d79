#[punctual::app]
mod app {
    struct Point {
        x: i32,
        y: i32,
    }

    struct Marker;

    static NAMES: [&str; 2] = ["a", "b"];

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        statics::spawn(NAMES[0], &NAMES).unwrap();
        arrays::spawn([1, 2, 3], [[0; 2]; 2]).unwrap();
        patterns::spawn(Point { x: 1, y: 2 }, (3, (4, 5)), [6, 7, 8], Marker, 9, 10).ok().unwrap();
        ignored::spawn(1, "two", ()).unwrap();
        owned::spawn(String::from("x"), Box::new(|n| n + 1), vec![Some(1)], double).ok().unwrap();
        one_unit::spawn(()).unwrap();
        one_tuple::spawn((1, 2)).unwrap();
        assert!(matches!(one_tuple::spawn((3, 4)), Err(punctual::SpawnError::Full((3, 4), _))));
        (Shared {}, Local {})
    }

    fn double(n: &u32) -> u32 {
        n * 2
    }

    #[task(priority = 9)]
    fn statics(_: statics::Context, name: &'static str, names: &'static [&'static str; 2]) {
        assert_eq!(name, names[0]);
    }

    #[task(priority = 8)]
    fn arrays(_: arrays::Context, mut a: [u32; 3], [b, _]: [[u8; 2]; 2]) {
        a[0] += u32::from(b[0]);
        assert_eq!(a, [1, 2, 3]);
    }

    #[task(priority = 7)]
    fn patterns(
        _: patterns::Context,
        Point { x, mut y }: Point,
        (a, (b, mut c)): (u32, (u32, u32)),
        [first, .., last]: [u32; 3],
        Marker: Marker,
        ref r: u32,
        whole @ _: u32,
    ) {
        y += x;
        c += a + b;
        assert_eq!((y, c, first, last, *r, whole), (3, 12, 6, 8, 9, 10));
    }

    #[task(priority = 6)]
    fn ignored(_: ignored::Context, _: u32, _: &'static str, (): ()) {}

    #[task(priority = 5)]
    fn owned(
        _: owned::Context,
        mut text: String,
        add: Box<dyn Fn(u32) -> u32 + Send>,
        list: Vec<Option<u8>>,
        function: fn(&u32) -> u32,
    ) {
        text.push('y');
        assert_eq!((text.as_str(), add(1), list.len(), function(&4)), ("xy", 2, 1, 8));
    }

    #[task(priority = 4)]
    fn one_unit(_: one_unit::Context, _: ()) {}

    #[task(priority = 1)]
    fn one_tuple(_: one_tuple::Context, (a, b): (u32, u32)) {
        assert_eq!((a, b), (1, 2));
        punctual::shutdown();
    }
}

#[test]
fn runs() {
    assert_eq!(main(), std::process::ExitCode::SUCCESS);
}
