<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="en" sourcelanguage="en">
    <context>
        <name>Hearth</name>
        <message numerus="yes">
            <location filename="app/chat/blocks/text_blocks.py" />
            <source>{count} more characters</source>
            <translation>
                <numerusform>{count} more character</numerusform>
                <numerusform>{count} more characters</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <location filename="app/chat/kept/words.py" />
            <source>Reading {count} tokens, {percent} %</source>
            <translation>
                <numerusform>Reading {count} token, {percent} %</numerusform>
                <numerusform>Reading {count} tokens, {percent} %</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <location filename="app/chat/kept/words.py" />
            <source>{count} tokens were read. {why}</source>
            <translation>
                <numerusform>{count} token was read. {why}</numerusform>
                <numerusform>{count} tokens were read. {why}</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <location filename="app/chat/kept/words.py" />
            <source>{count} tokens were read again. {why}</source>
            <translation>
                <numerusform>{count} token was read again. {why}</numerusform>
                <numerusform>{count} tokens were read again. {why}</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <location filename="app/chat/kept/words.py" />
            <source>Waiting: next in line, %n chats answer at once</source>
            <translation>
                <numerusform>Waiting: next in line, %n chat answers at once</numerusform>
                <numerusform>Waiting: next in line, %n chats answer at once</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <location filename="app/chat/kept/words.py" />
            <source>Waiting: number {number} in line, %n chats answer at once</source>
            <translation>
                <numerusform>Waiting: number {number} in line, %n chat answers at once</numerusform>
                <numerusform>Waiting: number {number} in line, %n chats answer at once</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <location filename="app/chat/turns/info.py" />
            <source>%n messages</source>
            <translation>
                <numerusform>%n message</numerusform>
                <numerusform>%n messages</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <location filename="app/chat/turns/parts/thinking_words.py" />
            <source>Thought for {time} · %n tokens</source>
            <translation>
                <numerusform>Thought for {time} · %n token</numerusform>
                <numerusform>Thought for {time} · %n tokens</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <location filename="app/connections/trash.py" />
            <source>%n chats in the trash</source>
            <translation>
                <numerusform>%n chat in the trash</numerusform>
                <numerusform>%n chats in the trash</numerusform>
            </translation>
        </message>
    </context>
</TS>
