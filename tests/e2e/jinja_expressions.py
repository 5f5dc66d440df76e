"""Expressions whose value must be Python's. Each is rendered as {{ EXPRESSION }} with VARS."""

VARS = {
    "s": "Hello, World", "t": "  padded\t\n", "u": "naïve Straße ΣΑΣ ☃ 😀", "e": "", "q": "it's \"q\"",
    "n": 7, "m": -3, "f": 2.5, "z": 0, "big": 123456789012345678901234567890 % 10**18,
    "yes": True, "no": False, "nil": None, "xs": [3, 1, 2], "ys": ["b", "A", "c", "a"],
    "d": {"b": 1, "a": 2, "C": 3}, "nested": {"k": [1, {"x": None, "y": [True, 1.5]}]},
    "msgs": [{"role": "user", "content": "hi", "n": 2}, {"role": "assistant", "content": "yo", "n": 1},
             {"role": "user", "content": "bye", "n": 3}],
}

EXPRESSIONS = r"""
1 + 2 * 3
7 // 2
-7 // 2
7 // -2
7 % 3
-7 % 3
7 % -3
-7.5 // 2
-7.5 % 2
7.5 % -2
1 / 3
6 / 2
2 ** 10
2 ** -1
-2 ** 2
2 ** 3 ** 2
10 ** 15 * 1.0
1e16
1.5e-7
0.1 + 0.2
1e22
123456789.123456789
100.0
-0.0
1.0 / 3
5 // 0.3
1_000 + 0x1f + 0b11 + 0o17
+5
-n
- m
1 == 1.0
1 == true
'a' == 'a'
'a' < 'b'
'a' < 'B'
[1, 2] < [1, 3]
(1, 2) == (1, 2)
[1, 2] == (1, 2)
1 < 2 < 3
1 < 3 < 2
3 > 2 > 1 == 1
1 != 2
not 1
not not ''
1 and 2
0 and 2
0 or 'x'
'' or none
nil or 0 or []
1 if yes else 2
1 if no else 2
1 if no
(1 if no) is defined
'a' if no else 'b' if no else 'c'
'x' in 'xyz'
'q' not in 'xyz'
2 in xs
5 not in xs
'a' in d
1 in d
'' in s
none in [none]
1.0 in xs
xs
ys
d
nested
[]
{}
()
(1,)
(1, 2)
[1, [2, [3]]]
{'a': {'b': [1, (2,)]}}
{1: 'x', 2.5: none, none: true, (1, 2): []}
[none, true, false, 1.0, 'it''s']
['it\'s', "say \"x\"", 'both \' and "']
['\n\t\\', '\x00\x7f', 'é☃😀', '\u200b', '\xa0']
q
[q]
none
nil
yes
[yes, no]
undefined_thing
[undefined_thing]
s ~ 1 ~ none ~ true ~ 1.5 ~ [1, 'a']
'a' ~ undefined_thing ~ 'b'
'a' + 'b' + s
'ab' * 3
3 * 'ab'
'ab' * 0
'ab' * -1
[1] * 3
[1] + [2, 3]
(1,) + (2,)
'con' 'cat' "en"
s[0]
s[-1]
s[100]
s[1:4]
s[:4]
s[4:]
s[-5:]
s[:-5]
s[::2]
s[::-1]
s[8:2:-2]
s[100:]
s[-100:3]
u[3:9]
u[::-1]
u[-1]
u[2]
u | length
xs[0]
xs[-1]
xs[5]
xs[5] is defined
xs[1:]
xs[::-1]
xs[:0]
xs[-2:]
xs[::2]
xs[3:0:-1]
(1, 2, 3)[1:]
(1, 2, 3)[::-1]
xs.0
nested.k.1.y.0
nested['k'][1]['x']
nested.k[1].y
d.b
d['b']
d.missing
d.missing is defined
d['missing'] is undefined
d.items()
d.keys()
d.values()
d.keys() | list
d.items() | list
d.values() | sum
d.get('a')
d.get('zz')
d.get('zz', 5)
d | length
d | list
d.copy()
'keys' in d
d.keys is defined
s.upper()
s.lower()
s.title()
'hello wOrld-foo bar'.title()
"they're bill's".title()
s.swapcase()
s.capitalize()
u.upper()
u.lower()
u.title()
u.capitalize()
u.swapcase()
u.casefold()
'ŉ ǰ ﬁ ǆ'.upper()
'ǆ ŉ'.title()
t.strip()
t.lstrip()
t.rstrip()
'xxaxx'.strip('x')
'xyaxy'.lstrip('yx')
'☃a☃'.strip('☃')
s.split()
s.split(', ')
s.split('o')
s.split('o', 1)
s.split('zz')
t.split()
' a b  c '.split(none, 1)
'a,b,,c,'.split(',')
' a b  c '.rsplit(none, 1)
'a,b,c'.rsplit(',', 1)
'a,b,c'.rsplit(',')
'a\nb\r\nc\n'.splitlines()
'a\nb\r\nc\n'.splitlines(true)
'a=b=c'.partition('=')
'a=b=c'.rpartition('=')
'abc'.partition('=')
'abc'.rpartition('=')
s.replace('o', '0')
s.replace('o', '0', 1)
'abc'.replace('', '-')
'aaa'.replace('a', '', 2)
s.startswith('Hell')
s.startswith(('x', 'He'))
s.startswith('World', 7)
s.endswith('ld')
s.endswith(('x',))
s.find('o')
s.find('o', 5)
s.find('zz')
s.rfind('o')
s.index('W')
u.find('☃')
s.count('o')
s.count('')
s.count('o', 5)
','.join(['a', 'b'])
', '.join(ys)
''.join([])
'-'.join('abc')
'abc'.center(9) ~ '|'
'abc'.center(10, '*')
'ab'.center(5, '*')
'abc'.ljust(6) ~ '|'
'abc'.rjust(6, '.')
'42'.zfill(5)
'-42'.zfill(5)
'a\tb'.expandtabs(4)
'abc'.removeprefix('a')
'abc'.removesuffix('bc')
'abc'.isalpha()
'ab1'.isalnum()
'123'.isdigit()
'²'.isdigit()
'²'.isdecimal()
'½'.isnumeric()
'  '.isspace()
''.isspace()
'abc'.islower()
'ABC'.isupper()
'Ab Cd'.istitle()
'abc'.isascii()
'é'.isascii()
'a\n'.isprintable()
'ab_1'.isidentifier()
'{} and {}'.format(1, 'x')
'{0}{1}{0}'.format('a', 'b')
'{a}-{b!r}'.format(a=1, b='x')
'{:>6}|{:<6}|{:^6}|'.format('a', 'b', 'c')
'{:06.2f} {:+d} {:,} {:x} {:#X} {:b} {:e} {:%}'.format(3.14159, 5, 1234567, 255, 255, 5, 12345.678, 0.25)
'{:*^10}'.format('é')
'{:.3}'.format('abcdef')
'{:5}|{:5}'.format(1, 'a')
'{0[k]} {0[k][1]}'.format(nested)
'{{}} {}'.format(1)
'{:.3} {:g} {:.10g}'.format(1.23456, 1e10, 123.456)
'{:{}}|'.format('a', 5)
'{a}'.format_map({'a': 3})
'%s-%d' % ('k', 3)
'%s' % 'x'
'%r %s' % ('a', none)
'%5d|%-5d|%05d|%+d' % (3, 3, 3, 3)
'%.2f %e %g' % (3.14159, 12345.6789, 0.00001)
'%x %X %o %#x' % (255, 255, 8, 255)
'%c%c' % ('a', 98)
'%%' % ()
'%(a)s %(b)d' % {'a': 1, 'b': 2}
'%s' % [1, 2]
'%10s|%-10s|%.2s' % ('ab', 'cd', 'efg')
'%*d' % (5, 3)
'%s %s' % (xs, d)
'abc' | upper
'ABC' | lower
'hello world-foo (bar' | title
'hELLO' | capitalize
'  x ' | trim
'xxax' | trim('x')
5 | string
none | string
s | length
xs | length
undefined_thing | length
xs | count
xs | first
xs | last
[] | first
[] | first is defined
[] | last
'abc' | first
d | first
d | last
xs | join
xs | join(', ')
xs | join(0)
msgs | join('|', attribute='role')
msgs | join(', ', 'content')
undefined_thing | join(',')
xs | sort
xs | sort(reverse=true)
ys | sort
ys | sort(case_sensitive=true)
msgs | sort(attribute='n') | map(attribute='content') | list
msgs | sort(attribute='role,n') | map(attribute='n') | list
ys | unique | list
['a', 'A', 'b'] | unique(case_sensitive=true) | list
msgs | unique(attribute='role') | map(attribute='n') | list
xs | reverse | list
'abc' | reverse
xs | min
xs | max
ys | min
ys | max(case_sensitive=true)
msgs | max(attribute='n')
[] | min
xs | sum
msgs | sum(attribute='n')
xs | sum(start=10)
[1.5, 2] | sum
d | dictsort
d | dictsort(true)
d | dictsort(by='value')
d | dictsort(false, 'value', true)
d | items | list
undefined_thing | items | list
xs | batch(2) | list
xs | batch(2, 'x') | list
[1, 2, 3, 4, 5, 6, 7] | slice(3) | list
[1, 2, 3, 4, 5, 6, 7] | slice(3, 0) | list
msgs | groupby('role')
msgs | groupby('role') | map(attribute='grouper') | list
msgs | groupby('role') | map(attribute='list') | map('length') | list
ys | groupby('0') | list | length
msgs | map(attribute='content') | join(',')
msgs | map(attribute='zz', default='-') | join(',')
ys | map('upper') | list
ys | map('replace', 'a', 'X') | list
xs | map('string') | map('length') | list
xs | select('odd') | list
xs | select('gt', 1) | list
xs | select | list
[0, 1, '', 'a', none] | select | list
xs | reject('odd') | list
[0, 1, '', 'a'] | reject | list
msgs | selectattr('role', 'equalto', 'user') | map(attribute='content') | list
msgs | selectattr('role', '==', 'user') | list | length
msgs | selectattr('zz', 'defined') | list
msgs | selectattr('role') | list | length
msgs | rejectattr('role', 'eq', 'user') | list
msgs | rejectattr('n', 'in', [1, 2]) | map(attribute='n') | list
msgs | selectattr('n', 'divisibleby', 2) | list
none | select | list
undefined_thing | default('x')
undefined_thing | d('y')
'' | default('x')
'' | default('x', true)
none | default('x')
none | default('x', boolean=true)
undefined_thing.foo | default('x')
undefined_thing is defined and undefined_thing.foo
'42' | int
'42.9' | int
'abc' | int
'abc' | int(5)
'0x1A' | int(base=16)
'0b11' | int(0, 2)
' 12_000 ' | int
3.99 | int
-3.99 | int
true | int
none | int
'1e3' | int
'3.5' | float
'abc' | float
'abc' | float(1.5)
'1e3' | float
'inf' | float
' -1_0.5 ' | float
5 | float
3.14159 | round
3.14159 | round(2)
2.5 | round
3.5 | round
2.675 | round(2)
1234.5 | round(-2)
5 | round
5 | round(1)
3.2 | round(method='ceil')
3.77 | round(1, 'floor')
3.2 | round | int
-5 | abs
-5.5 | abs
'a<b>&"\'' | e
'a<b>' | escape | upper
'<a>' | safe
('<a>' | safe) + '<b>'
('<a>' | e) ~ '<b>'
['<a>' | safe]
('<%s>' | safe) % '<x>'
'<a>' | e | e
'<a>' | e | forceescape
'a b&c/d' | urlencode
{'a': 1, 'b c': 'x y'} | urlencode
'one two  three' | wordcount
'%s and %s' | format('a', 'b')
'%(x)s' | format(x=1)
'abc' | center(9) ~ '|'
'a\nb\n\nc' | indent
'a\nb\n\nc' | indent(2, true)
'a\nb\n\nc' | indent(2, first=true, blank=true)
'a\nb' | indent('>> ')
'a\nb\n' | indent
'foo bar baz qux' | truncate(9)
'foo bar baz qux' | truncate(9, true)
'foo bar baz qux' | truncate(11)
'foo bar baz qux' | truncate(11, false, '...', 0)
1000 | filesizeformat
1 | filesizeformat
123456789 | filesizeformat
123456789 | filesizeformat(true)
'aXbX' | replace('X', '-')
'aXbX' | replace('X', '-', 1)
123 | replace(2, 'x')
xs | list
'abc' | list
(1, 2) | list
range(3) | list
range(3)
range(1, 10, 3)
range(5, 0, -2) | list
range(5)[1:3]
range(5)[-1]
range(2, 9, 2).index(4)
range(3).count(2)
('<a>' | safe) | list
d | sort(attribute='zz')
'ab' | truncate(5)
xs | truncate(5)
range(3) | length
range(0) | list
2 in range(3)
d | tojson
nested | tojson
'é☃😀"\\/\n\x01\x7f' | tojson
'é☃😀\x7f' | tojson(ensure_ascii=true)
nested | tojson(indent=2)
d | tojson(sort_keys=true)
d | tojson(separators=(',', ':'))
d | tojson(indent=1, separators=(', ', '='))
[] | tojson(indent=2)
{'a': [], 'b': {}} | tojson(indent=4)
[1.0, 1e100, 0.1, -0.0, 1e16] | tojson
{1: 2, none: 3, true: 4, 1.5: 5} | tojson
(1, 2) | tojson
[1, [2]] | tojson(indent='\t')
none | tojson
yes | tojson
'<a href="x">' | tojson
s is string
1 is string
1 is number
1.5 is number
true is number
1 is integer
true is integer
1.0 is float
true is boolean
1 is boolean
none is none
0 is none
undefined_thing is defined
undefined_thing is undefined
undefined_thing is none
d is mapping
xs is mapping
xs is sequence
s is sequence
d is sequence
d.items() is sequence
5 is sequence
xs is iterable
5 is iterable
undefined_thing is iterable
undefined_thing is sequence
d.keys() is iterable
range is callable
5 is callable
3 is odd
3 is even
-3 is odd
9 is divisibleby 3
9 is divisibleby(2)
1 is eq 1
1 is equalto 2
1 is ne 2
2 is gt 1
2 is greaterthan 3
2 is ge 2
2 is lt 3
2 is lessthan 1
2 is le 2
2 is in xs
'x' is in 'xyz'
'ABC' is upper
'abc' is lower
none is sameas none
1 is sameas true
true is true
1 is true
false is false
'upper' is filter
'nope' is filter
'odd' is test
('a' | e) is escaped
'a' is escaped
1 is not string
not 1 is string
s is string and n is number
n is number or s is nothing_special_never_reached if false else 'ok'
dict(a=1, b=2)
dict([('a', 1), ('b', 2)])
dict({'a': 1}, b=3)
namespace(a=1)
namespace(a=1).a
namespace({'x': 2}).x
cycler('a', 'b').current
msgs[0].content
msgs[-1]['content']
msgs | map(attribute='content') | map('upper') | join(' ')
(msgs | selectattr('role', 'eq', 'user') | list | last).content
msgs | map('attr', 'content') | list
('a', 'b') | join
{'a': 1}.a
'abc'['upper']()
[1, 2, 3].index(2)
[1, 2, 1].count(1)
(1, 2, 1).count(1)
1.0.is_integer()
2.5.is_integer()
d.a + d.b * d.C
s.split(', ')[1][::-1] | upper
(1, 2, 3) | sum
'a' ~ 'b' * 2
1 ~ 2 + 3
'%s' | format(1) ~ 'x'
-1 | abs
(-1) | abs
2 * 3 | string
'a.b.c'.split('.')[-1]
{'a': 1, 'a': 2}
[1, 2, 3,]
{'x': 1,}
[[1, 2], [3, 4]] | map('first') | list
[[1, 2], [3, 4]] | map('join', '-') | list
[3, 1] | sort | first
"\u00e9\x41\101\n".strip()
"a\qb"
1 is number and 'a' is string
big
18446744073709551615
true ~ false
[1, true, 1.0, 'a'] | unique | list
{'b': 1, 'a': 2} == {'a': 2, 'b': 1}
xs == [3, 1, 2]
none == false
'' == none
undefined_thing == undefined_other
undefined_thing == none
undefined_thing != 1
not undefined_thing
1 in [[1], 1]
[1] in [[1], 1]
'a' in ('a', 'b')
'ab' < 'abc'
true + true
true * 3.5
1 if xs else 2
1 if [] else 2
1 if {} else 2
1 if '' else 2
1 if 0.0 else 2
1 if undefined_thing else 2
1 if range(0) else 2
""".strip("\n")

# What must be refused, as Python refuses it.
ERRORS = r"""
1 + 'a'
'a' + 1
[1] + (2,)
none + 1
1 / 0
1 // 0
1 % 0
1.5 % 0
1 < 'a'
none < 1
[1] < 5
undefined_thing + 1
undefined_thing.foo
undefined_thing['foo']
undefined_thing.foo.bar | default('x')
undefined_thing()
undefined_thing < 1
-undefined_thing
d.missing.deeper
xs[5].foo
'abc'.nothing()
none.foo.bar
5()
s()
xs.foo()
5 | length
5 | list
5 | first
5 | join
none | join
1 in 5
1 in 'abc'
none in 'abc'
undefined_thing in 'abc'
'a' in none
xs | map('nope') | list
xs | select('nope') | list
xs | map | list
xs['a':]
xs is filter
range(3).index(7)
xs[::0]
n[1:]
d[1:]
{[]: 1}
{{}: 1}
[1, 'a'] | sort
[1, none] | max
d | dictsort(by='x')
undefined_thing | tojson
range | tojson
{(1, 2): 3} | tojson
[undefined_thing] | tojson
undefined_thing | int
undefined_thing | float
undefined_thing | round
undefined_thing | abs
'a' | abs
'a' | round
'abc'.index('z')
'abc'.split('')
[1].index(5)
'{} {}'.format(1)
'{a}'.format(b=1)
'{'.format(1)
'{:d}'.format('a')
'{:z}'.format(1)
'{:>5}'.format(none)
'%d' % 'a'
'%s %s' % ('a',)
'%s' % ('a', 'b')
'%q' % 1
'%' % 1
','.join([1, 2])
','.join(5)
range(1000000)
range('a')
range()
range(1, 2, 0)
cycler()
raise_exception('told you so')
dict(5)
xs | batch
xs | join(', ', 'a', 'b', 'c')
'a' | upper(1)
'a' | indent(nope=1)
s.startswith(5)
s.replace('a')
xs | groupby
1 if raise_exception('x') else 2
'inf' | float | int
[1, 2] | sum('a')
['a', 'b'] | sum
xs | min(attribute='a.b')
xs | slice(0) | list
'abc' | truncate(2)
none | items | list
5 | items | list
d | attr
strftime_now(5)
""".strip("\n")
