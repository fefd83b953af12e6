<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="de" sourcelanguage="en">
    <context>
        <name>Hearth</name>
        <message>
            <location filename="app/chat/blocks/inline_error.py" />
            <source>Copy the details</source>
            <translation>Einzelheiten kopieren</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/inline_error.py" />
            <source>Details</source>
            <translation>Einzelheiten</translation>
        </message>
        <message numerus="yes">
            <location filename="app/chat/blocks/text_blocks.py" />
            <source>{count} more characters</source>
            <translation>
                <numerusform>{count} weiteres Zeichen</numerusform>
                <numerusform>{count} weitere Zeichen</numerusform>
            </translation>
        </message>
        <message>
            <location filename="app/chat/blocks/text_blocks.py" />
            <source>You wrote</source>
            <translation>Du hast geschrieben</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>{count} tokens</source>
            <translation>{count} Token</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>{seconds} s</source>
            <translation>{seconds} s</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>Hearth was closed before this reply ended</source>
            <translation>Hearth wurde geschlossen, bevor diese Antwort fertig war</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>written by you</source>
            <translation>von dir geschrieben</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>{speed} tok/s</source>
            <translation>{speed} Token/s</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>first token {time}</source>
            <translation>erstes Token {time}</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>finished at a stop text</source>
            <translation>an einem Haltetext beendet</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>reached the limit</source>
            <translation>Grenze erreicht</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>context is full</source>
            <translation>Kontext ist voll</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>stopped by you</source>
            <translation>von dir angehalten</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>not finished</source>
            <translation>nicht fertig</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>finished</source>
            <translation>fertig</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>The engine stopped and was restarted.</source>
            <translation>Die Engine hielt an und wurde neu gestartet.</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>This does not fit into memory</source>
            <translation>Das passt nicht in den Speicher</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>This message cannot be answered</source>
            <translation>Diese Nachricht kann nicht beantwortet werden</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>This chat is too long to send</source>
            <translation>Dieser Chat ist zu lang zum Senden</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>The model cannot read this chat</source>
            <translation>Das Modell kann diesen Chat nicht lesen</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>Your message was not saved</source>
            <translation>Deine Nachricht wurde nicht gespeichert</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>The disk is full</source>
            <translation>Der Datenträger ist voll</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>The engine is not there</source>
            <translation>Die Engine ist nicht da</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>The engine was started again</source>
            <translation>Die Engine wurde neu gestartet</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>There is no reply</source>
            <translation>Es gibt keine Antwort</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>Your chat is intact.</source>
            <translation>Dein Chat ist unversehrt.</translation>
        </message>
        <message>
            <location filename="app/chat/composer.py" />
            <source>sends when this reply ends</source>
            <translation>wird gesendet, wenn diese Antwort fertig ist</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>Earlier messages no longer fit and are not seen by the model</source>
            <translation>Frühere Nachrichten passen nicht mehr hinein; das Modell sieht sie nicht</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>{what}. {why}</source>
            <translation>{what}. {why}</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>resumed {count} of {total} tokens from {place}, {size} in {time}</source>
            <translation>{count} von {total} Token aus {place} fortgesetzt, {size} in {time}</translation>
        </message>
        <message numerus="yes">
            <location filename="app/chat/kept/words.py" />
            <source>Reading {count} tokens, {percent} %</source>
            <translation>
                <numerusform>Liest {count} Token, {percent} %</numerusform>
                <numerusform>Liest {count} Token, {percent} %</numerusform>
            </translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>too short to keep</source>
            <translation>zu kurz zum Aufheben</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>nothing was kept</source>
            <translation>nichts war aufgehoben</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>begins differently</source>
            <translation>beginnt anders</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>made room for others</source>
            <translation>hat anderen Platz gemacht</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>no room to resume</source>
            <translation>kein Platz zum Fortsetzen</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>message edited</source>
            <translation>Nachricht geändert</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>another model</source>
            <translation>anderes Modell</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>kept file damaged</source>
            <translation>aufgehobene Datei beschädigt</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>another chat template</source>
            <translation>andere Chat-Vorlage</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>rewritten by the template</source>
            <translation>von der Vorlage umgeschrieben</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>the oldest left out</source>
            <translation>das Älteste weggelassen</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>read {count}: {why}</source>
            <translation>{count} gelesen: {why}</translation>
        </message>
        <message numerus="yes">
            <location filename="app/chat/kept/words.py" />
            <source>{count} tokens were read. {why}</source>
            <translation>
                <numerusform>{count} Token wurden gelesen. {why}</numerusform>
                <numerusform>{count} Token wurden gelesen. {why}</numerusform>
            </translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>read {count} again: {why}</source>
            <translation>{count} neu gelesen: {why}</translation>
        </message>
        <message numerus="yes">
            <location filename="app/chat/kept/words.py" />
            <source>{count} tokens were read again. {why}</source>
            <translation>
                <numerusform>{count} Token wurden neu gelesen. {why}</numerusform>
                <numerusform>{count} Token wurden neu gelesen. {why}</numerusform>
            </translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>disk</source>
            <translation>Datenträger</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>resumed {count} of {total} tokens</source>
            <translation>{count} von {total} Token fortgesetzt</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>resumed {count} of {total} tokens from {place}</source>
            <translation>{count} von {total} Token aus {place} fortgesetzt</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>Taking up the chat, {percent} % of {size}</source>
            <translation>Nimmt den Chat wieder auf, {percent} % von {size}</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>the GPU</source>
            <translation>der GPU</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>memory</source>
            <translation>Arbeitsspeicher</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>RAM</source>
            <translation>RAM</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>Waiting: the model is loading</source>
            <translation>Wartet: Das Modell wird geladen</translation>
        </message>
        <message numerus="yes">
            <location filename="app/chat/kept/words.py" />
            <source>Waiting: next in line, %n chats answer at once</source>
            <translation>
                <numerusform>Wartet: als Nächstes dran, %n Chat antwortet zugleich</numerusform>
                <numerusform>Wartet: als Nächstes dran, %n Chats antworten zugleich</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <location filename="app/chat/kept/words.py" />
            <source>Waiting: number {number} in line, %n chats answer at once</source>
            <translation>
                <numerusform>Wartet: Platz {number}, %n Chat antwortet zugleich</numerusform>
                <numerusform>Wartet: Platz {number}, %n Chats antworten zugleich</numerusform>
            </translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>Waiting for {needed} of memory, {free} are free</source>
            <translation>Wartet auf {needed} Speicher, {free} sind frei</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>Waiting: next in line, another message is being read</source>
            <translation>Wartet: als Nächstes dran, eine andere Nachricht wird gelesen</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>Waiting: number {number} in line, another message is being read</source>
            <translation>Wartet: Platz {number}, eine andere Nachricht wird gelesen</translation>
        </message>
        <message>
            <location filename="app/chat/options/cost.py" />
            <source>about {count} tokens</source>
            <translation>etwa {count} Token</translation>
        </message>
        <message>
            <location filename="app/chat/options/cost.py" />
            <source>too long: {count} fit into the context</source>
            <translation>zu lang: {count} passen in den Kontext</translation>
        </message>
        <message>
            <location filename="app/chat/options/cost.py" />
            <source>{share} % of context</source>
            <translation>{share} % des Kontexts</translation>
        </message>
        <message>
            <location filename="app/chat/options/cost.py" />
            <source>first token in about {seconds} s</source>
            <translation>erstes Token in etwa {seconds} s</translation>
        </message>
        <message>
            <location filename="app/chat/options/cost.py" />
            <source>the oldest messages are left out</source>
            <translation>die ältesten Nachrichten werden weggelassen</translation>
        </message>
        <message>
            <location filename="app/chat/options/panel.py" />
            <source>Temperature</source>
            <translation>Temperatur</translation>
        </message>
        <message>
            <location filename="app/chat/options/panel.py" />
            <source>Top-k</source>
            <translation>Top-k</translation>
        </message>
        <message>
            <location filename="app/chat/options/panel.py" />
            <source>Top-p</source>
            <translation>Top-p</translation>
        </message>
        <message>
            <location filename="app/chat/options/panel.py" />
            <source>Min-p</source>
            <translation>Min-p</translation>
        </message>
        <message>
            <location filename="app/chat/options/panel.py" />
            <source>Repetition penalty</source>
            <translation>Wiederholungsstrafe</translation>
        </message>
        <message>
            <location filename="app/chat/options/panel.py" />
            <source>Seed</source>
            <translation>Startwert</translation>
        </message>
        <message>
            <location filename="app/chat/options/panel.py" />
            <source>Most tokens of a reply</source>
            <translation>Höchstens Token je Antwort</translation>
        </message>
        <message>
            <location filename="app/chat/options/panel.py" />
            <source>Options of this chat</source>
            <translation>Optionen dieses Chats</translation>
        </message>
        <message>
            <location filename="app/chat/options/panel.py" />
            <source>Preset</source>
            <translation>Voreinstellung</translation>
        </message>
        <message>
            <location filename="app/chat/options/panel.py" />
            <source>As the model has it. A change is read again once.</source>
            <translation>Wie das Modell es vorgibt. Eine Änderung wird einmal neu gelesen.</translation>
        </message>
        <message>
            <location filename="app/chat/options/panel.py" />
            <source>System prompt</source>
            <translation>Systemanweisung</translation>
        </message>
        <message>
            <location filename="app/chat/options/panel.py" />
            <source>as the model recommends</source>
            <translation>wie das Modell empfiehlt</translation>
        </message>
        <message>
            <location filename="app/chat/options/panel.py" />
            <source>None</source>
            <translation>Keine</translation>
        </message>
        <message>
            <location filename="app/chat/options/think_button.py" />
            <source>Think: auto</source>
            <translation>Denken: automatisch</translation>
        </message>
        <message>
            <location filename="app/chat/options/think_button.py" />
            <source>Think: on</source>
            <translation>Denken: an</translation>
        </message>
        <message>
            <location filename="app/chat/options/think_button.py" />
            <source>Think: off</source>
            <translation>Denken: aus</translation>
        </message>
        <message>
            <location filename="app/chat/options/think_button.py" />
            <source>Whether the model thinks before it replies</source>
            <translation>Ob das Modell vor der Antwort nachdenkt</translation>
        </message>
        <message>
            <location filename="app/chat/page.py" />
            <source>Message {name}</source>
            <translation>Nachricht an {name}</translation>
        </message>
        <message>
            <location filename="app/chat/page.py" />
            <source>replaces your last message</source>
            <translation>ersetzt deine letzte Nachricht</translation>
        </message>
        <message>
            <location filename="app/chat/page.py" />
            <source>Write a message</source>
            <translation>Nachricht schreiben</translation>
        </message>
        <message>
            <location filename="app/chat/page.py" />
            <source>makes another version of this reply</source>
            <translation>macht eine weitere Fassung dieser Antwort</translation>
        </message>
        <message>
            <location filename="app/chat/page.py" />
            <source>makes another version of this message</source>
            <translation>macht eine weitere Fassung dieser Nachricht</translation>
        </message>
        <message>
            <location filename="app/chat/page.py" />
            <source>sends when the model is ready</source>
            <translation>wird gesendet, wenn das Modell bereit ist</translation>
        </message>
        <message>
            <location filename="app/chat/rendered/box_widgets.py" />
            <source>Copy the code</source>
            <translation>Code kopieren</translation>
        </message>
        <message>
            <location filename="app/chat/rendered/box_widgets.py" />
            <source>Scroll to the side</source>
            <translation>Zur Seite rollen</translation>
        </message>
        <message>
            <location filename="app/chat/rendered/box_widgets.py" />
            <source>Copied</source>
            <translation>Kopiert</translation>
        </message>
        <message>
            <location filename="app/chat/rendered/link_dialog.py" />
            <source>Link</source>
            <translation>Link</translation>
        </message>
        <message>
            <location filename="app/chat/rendered/link_dialog.py" />
            <source>This link leads to</source>
            <translation>Dieser Link führt zu</translation>
        </message>
        <message>
            <location filename="app/chat/rendered/link_dialog.py" />
            <source>Address</source>
            <translation>Adresse</translation>
        </message>
        <message>
            <location filename="app/chat/rendered/link_dialog.py" />
            <source>Close</source>
            <translation>Schließen</translation>
        </message>
        <message>
            <location filename="app/chat/rendered/link_dialog.py" />
            <source>Copy</source>
            <translation>Kopieren</translation>
        </message>
        <message>
            <location filename="app/chat/rendered/link_dialog.py" />
            <source>Open in the browser</source>
            <translation>Im Browser öffnen</translation>
        </message>
        <message>
            <location filename="app/chat/rendered/reply.py" />
            <source>Reply</source>
            <translation>Antwort</translation>
        </message>
        <message>
            <location filename="app/chat/session_view.py" />
            <source>Answer again</source>
            <translation>Noch einmal antworten</translation>
        </message>
        <message>
            <location filename="app/chat/session_view.py" />
            <source>Edit the message</source>
            <translation>Nachricht bearbeiten</translation>
        </message>
        <message>
            <location filename="app/chat/session_view.py" />
            <source>Continue</source>
            <translation>Fortsetzen</translation>
        </message>
        <message>
            <location filename="app/chat/transcript.py" />
            <source>Conversation</source>
            <translation>Gespräch</translation>
        </message>
        <message>
            <location filename="app/chat/transcript.py" />
            <source>Copy the selection</source>
            <translation>Auswahl kopieren</translation>
        </message>
        <message>
            <location filename="app/chat/transcript.py" />
            <source>Select all</source>
            <translation>Alles auswählen</translation>
        </message>
        <message>
            <location filename="app/chat/turns/deeds.py" />
            <source>{what} ({keys})</source>
            <translation>{what} ({keys})</translation>
        </message>
        <message>
            <location filename="app/chat/turns/deeds.py" />
            <source>Copy the message</source>
            <translation>Nachricht kopieren</translation>
        </message>
        <message>
            <location filename="app/chat/turns/deeds.py" />
            <source>Edit</source>
            <translation>Bearbeiten</translation>
        </message>
        <message>
            <location filename="app/chat/turns/deeds.py" />
            <source>Branch into a new chat</source>
            <translation>In einen neuen Chat abzweigen</translation>
        </message>
        <message>
            <location filename="app/chat/turns/deeds.py" />
            <source>Delete</source>
            <translation>Löschen</translation>
        </message>
        <message>
            <location filename="app/chat/turns/deeds.py" />
            <source>Copy as Markdown</source>
            <translation>Als Markdown kopieren</translation>
        </message>
        <message>
            <location filename="app/chat/turns/deeds.py" />
            <source>Copy as plain text</source>
            <translation>Als reinen Text kopieren</translation>
        </message>
        <message>
            <location filename="app/chat/turns/deeds.py" />
            <source>Information</source>
            <translation>Informationen</translation>
        </message>
        <message>
            <location filename="app/chat/turns/deeds.py" />
            <source>Copy the thoughts</source>
            <translation>Gedanken kopieren</translation>
        </message>
        <message>
            <location filename="app/chat/turns/desk.py" />
            <source>{title} (branch)</source>
            <translation>{title} (Zweig)</translation>
        </message>
        <message numerus="yes">
            <location filename="app/chat/turns/info.py" />
            <source>%n messages</source>
            <translation>
                <numerusform>%n Nachricht</numerusform>
                <numerusform>%n Nachrichten</numerusform>
            </translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>{name}: {value}</source>
            <translation>{name}: {value}</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Model</source>
            <translation>Modell</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Digest</source>
            <translation>Prüfsumme</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Chat template</source>
            <translation>Chat-Vorlage</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Read</source>
            <translation>Gelesen</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Written</source>
            <translation>Geschrieben</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Of it thought</source>
            <translation>Davon gedacht</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Begun</source>
            <translation>Begonnen</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Waited</source>
            <translation>Gewartet</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Reading</source>
            <translation>Lesen</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>First token after</source>
            <translation>Erstes Token nach</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Writing</source>
            <translation>Schreiben</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Presence penalty</source>
            <translation>Anwesenheitsstrafe</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Frequency penalty</source>
            <translation>Häufigkeitsstrafe</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Longest reply</source>
            <translation>Längste Antwort</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Stop texts</source>
            <translation>Haltetexte</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Computed on</source>
            <translation>Gerechnet auf</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Left out of the context</source>
            <translation>Im Kontext weggelassen</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Resumed</source>
            <translation>Fortgesetzt</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Note</source>
            <translation>Hinweis</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>GPU</source>
            <translation>GPU</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>processor</source>
            <translation>Prozessor</translation>
        </message>
        <message>
            <location filename="app/chat/turns/parts/announcer.py" />
            <source>The reply is finished</source>
            <translation>Die Antwort ist fertig</translation>
        </message>
        <message>
            <location filename="app/chat/turns/parts/info_dialog.py" />
            <source>About this reply</source>
            <translation>Über diese Antwort</translation>
        </message>
        <message>
            <location filename="app/chat/turns/parts/row.py" />
            <source>More</source>
            <translation>Mehr</translation>
        </message>
        <message>
            <location filename="app/chat/turns/parts/thinking.py" />
            <source>Thoughts</source>
            <translation>Gedanken</translation>
        </message>
        <message numerus="yes">
            <location filename="app/chat/turns/parts/thinking_words.py" />
            <source>Thought for {time} · %n tokens</source>
            <translation>
                <numerusform>{time} nachgedacht · %n Token</numerusform>
                <numerusform>{time} nachgedacht · %n Token</numerusform>
            </translation>
        </message>
        <message>
            <location filename="app/chat/turns/parts/thinking_words.py" />
            <source>{minutes} min {seconds} s</source>
            <translation>{minutes} min {seconds} s</translation>
        </message>
        <message>
            <location filename="app/chat/turns/parts/thinking_words.py" />
            <source>Thinking, {time}</source>
            <translation>Denkt nach, {time}</translation>
        </message>
        <message>
            <location filename="app/chat/turns/parts/thinking_words.py" />
            <source>Thinking</source>
            <translation>Denkt nach</translation>
        </message>
        <message>
            <location filename="app/chat/turns/parts/turn_blocks.py" />
            <source>Your message</source>
            <translation>Deine Nachricht</translation>
        </message>
        <message>
            <location filename="app/chat/turns/parts/turn_blocks.py" />
            <source>Not finished: {why}</source>
            <translation>Nicht fertig: {why}</translation>
        </message>
        <message>
            <location filename="app/chat/turns/parts/turn_blocks.py" />
            <source>From here on: {name}</source>
            <translation>Ab hier: {name}</translation>
        </message>
        <message>
            <location filename="app/chat/turns/parts/versions.py" />
            <source>Version {number} of {count}</source>
            <translation>Fassung {number} von {count}</translation>
        </message>
        <message>
            <location filename="app/chat/turns/parts/versions.py" />
            <source>Earlier version</source>
            <translation>Frühere Fassung</translation>
        </message>
        <message>
            <location filename="app/chat/turns/parts/versions.py" />
            <source>Later version</source>
            <translation>Spätere Fassung</translation>
        </message>
        <message>
            <location filename="app/chat/turns/parts/waiting.py" />
            <source>Waiting for {name}</source>
            <translation>Wartet auf {name}</translation>
        </message>
        <message>
            <location filename="app/chat/turns/parts/waiting.py" />
            <source>Waiting for a model</source>
            <translation>Wartet auf ein Modell</translation>
        </message>
        <message>
            <location filename="app/composition.py" />
            <source>Something in the window went wrong. Your chats are safe.</source>
            <translation>Im Fenster ging etwas schief. Deine Chats sind sicher.</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>New chat</source>
            <translation>Neuer Chat</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Stop the reply</source>
            <translation>Antwort anhalten</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Delete the chat</source>
            <translation>Chat löschen</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Undo</source>
            <translation>Rückgängig</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Close the window</source>
            <translation>Fenster schließen</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Toggle the sidebar</source>
            <translation>Seitenleiste ein- oder ausblenden</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Search chats</source>
            <translation>Chats durchsuchen</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Choose a model</source>
            <translation>Modell wählen</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Show the chat</source>
            <translation>Chat zeigen</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Show the memory</source>
            <translation>Speicher zeigen</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Settings</source>
            <translation>Einstellungen</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Larger text</source>
            <translation>Größerer Text</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Smaller text</source>
            <translation>Kleinerer Text</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Text as the system has it</source>
            <translation>Text wie im System</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Keyboard shortcuts</source>
            <translation>Tastenkürzel</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Copy the reply</source>
            <translation>Antwort kopieren</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Copy the last code block</source>
            <translation>Letzten Codeblock kopieren</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Continue the reply</source>
            <translation>Antwort fortsetzen</translation>
        </message>
        <message>
            <location filename="app/connections/chats.py" />
            <source>Chat moved to trash</source>
            <translation>Chat in den Papierkorb gelegt</translation>
        </message>
        <message>
            <location filename="app/connections/chats.py" />
            <source>Message moved to trash</source>
            <translation>Nachricht in den Papierkorb gelegt</translation>
        </message>
        <message>
            <location filename="app/connections/chats.py" />
            <source>Reply moved to trash</source>
            <translation>Antwort in den Papierkorb gelegt</translation>
        </message>
        <message>
            <location filename="app/connections/chats.py" />
            <source>The engine stopped and was started again; your chat is intact</source>
            <translation>Die Engine hielt an und wurde neu gestartet; dein Chat ist unversehrt</translation>
        </message>
        <message>
            <location filename="app/connections/pages.py" />
            <source>Show report</source>
            <translation>Bericht zeigen</translation>
        </message>
        <message>
            <location filename="app/connections/pages.py" />
            <source>The engine has not started yet.</source>
            <translation>Die Engine ist noch nicht gestartet.</translation>
        </message>
        <message>
            <location filename="app/connections/pages.py" />
            <source>Please note</source>
            <translation>Bitte beachten</translation>
        </message>
        <message numerus="yes">
            <location filename="app/connections/trash.py" />
            <source>%n chats in the trash</source>
            <translation>
                <numerusform>%n Chat im Papierkorb</numerusform>
                <numerusform>%n Chats im Papierkorb</numerusform>
            </translation>
        </message>
        <message>
            <location filename="app/connections/trash.py" />
            <source>Delete for good?</source>
            <translation>Endgültig löschen?</translation>
        </message>
        <message>
            <location filename="app/connections/trash.py" />
            <source>{what}: the texts, and what is kept of them, cannot be brought back.</source>
            <translation>{what}: Die Texte und was von ihnen aufgehoben ist, sind nicht zurückzuholen.</translation>
        </message>
        <message>
            <location filename="app/connections/trash.py" />
            <source>Delete for good</source>
            <translation>Endgültig löschen</translation>
        </message>
        <message>
            <location filename="app/library/choice.py" />
            <source>Choose a model file</source>
            <translation>Modelldatei wählen</translation>
        </message>
        <message>
            <location filename="app/library/choice.py" />
            <source>Models (*.gguf *.safetensors)</source>
            <translation>Modelle (*.gguf *.safetensors)</translation>
        </message>
        <message>
            <location filename="app/memory/view/page.py" />
            <source>Memory</source>
            <translation>Speicher</translation>
        </message>
        <message>
            <location filename="app/memory/view/page.py" />
            <source>Unload the model</source>
            <translation>Modell entladen</translation>
        </message>
        <message>
            <location filename="app/memory/view/page.py" />
            <source>Gives its memory back; chats stay</source>
            <translation>Gibt seinen Speicher zurück; Chats bleiben</translation>
        </message>
        <message>
            <location filename="app/pages/head.py" />
            <source>Show the sidebar (Ctrl+B)</source>
            <translation>Seitenleiste zeigen (Strg+B)</translation>
        </message>
        <message>
            <location filename="app/pages/head.py" />
            <source>New chat (Ctrl+N)</source>
            <translation>Neuer Chat (Strg+N)</translation>
        </message>
        <message>
            <location filename="app/pages/settings/controls.py" />
            <source>Blue</source>
            <translation>Blau</translation>
        </message>
        <message>
            <location filename="app/pages/settings/controls.py" />
            <source>Green</source>
            <translation>Grün</translation>
        </message>
        <message>
            <location filename="app/pages/settings/controls.py" />
            <source>Violet</source>
            <translation>Violett</translation>
        </message>
        <message>
            <location filename="app/pages/settings/controls.py" />
            <source>Berry</source>
            <translation>Beere</translation>
        </message>
        <message>
            <location filename="app/pages/settings/controls.py" />
            <source>Slate</source>
            <translation>Schiefer</translation>
        </message>
        <message>
            <location filename="app/pages/settings/controls.py" />
            <source>Ember</source>
            <translation>Glut</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>automatic</source>
            <translation>automatisch</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Appearance</source>
            <translation>Aussehen</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Chats</source>
            <translation>Chats</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Models</source>
            <translation>Modelle</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Privacy and files</source>
            <translation>Privatsphäre und Dateien</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Help</source>
            <translation>Hilfe</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Theme</source>
            <translation>Farbschema</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Light, dark, or as the system is</source>
            <translation>Hell, dunkel oder wie das System</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Accent</source>
            <translation>Akzent</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>The colour of what you can do</source>
            <translation>Die Farbe dessen, was du tun kannst</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Size of text</source>
            <translation>Textgröße</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Of everything in the window; also Ctrl and + or -</source>
            <translation>Von allem im Fenster; auch Strg und + oder -</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Chats as wide as the window</source>
            <translation>Chats so breit wie das Fenster</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Otherwise a column that is good to read</source>
            <translation>Sonst eine Spalte, die sich gut liest</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Language</source>
            <translation>Sprache</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Of the window; replies are in the language that you write in</source>
            <translation>Des Fensters; Antworten kommen in der Sprache, in der du schreibst</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Send with</source>
            <translation>Senden mit</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>The other one, or Shift+Enter, begins a new line</source>
            <translation>Die andere oder Umschalt+Eingabe beginnt eine neue Zeile</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Title chats by themselves</source>
            <translation>Chats von selbst benennen</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>The model titles a chat after its first reply, while nothing else waits</source>
            <translation>Das Modell benennt einen Chat nach seiner ersten Antwort, wenn nichts anderes wartet</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Everything can be done by keyboard; also Ctrl+/</source>
            <translation>Alles geht mit der Tastatur; auch Strg+/</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Show</source>
            <translation>Zeigen</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Model at start</source>
            <translation>Modell beim Start</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Name or path of the one that is loaded when Hearth opens</source>
            <translation>Name oder Pfad dessen, das beim Öffnen geladen wird</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Folders with models</source>
            <translation>Ordner mit Modellen</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Looked through besides Hearth's own; nothing is copied or changed</source>
            <translation>Werden neben dem von Hearth durchsucht; nichts wird kopiert oder geändert</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Disk for kept chats</source>
            <translation>Platz für aufgehobene Chats</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>So that old chats go on at once; 0 keeps none. Texts of chats are not in it</source>
            <translation>Damit alte Chats sofort weitergehen; 0 hebt nichts auf. Texte sind nicht darin</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Longer context in 8 bits</source>
            <translation>Längerer Kontext in 8 Bit</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Where memory is short; replies may differ slightly</source>
            <translation>Wo der Speicher knapp ist; Antworten können leicht abweichen</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Where your chats are</source>
            <translation>Wo deine Chats sind</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>On this computer only. Hearth sends nothing of them anywhere and counts nothing</source>
            <translation>Nur auf diesem Rechner. Hearth sendet nichts davon und zählt nichts</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Open folder</source>
            <translation>Ordner öffnen</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Check this computer</source>
            <translation>Diesen Rechner prüfen</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>What Hearth found: processor, GPU, memory, disks</source>
            <translation>Was Hearth fand: Prozessor, GPU, Speicher, Datenträger</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Check</source>
            <translation>Prüfen</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Log</source>
            <translation>Protokoll</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>What the window and the engine wrote</source>
            <translation>Was Fenster und Engine schrieben</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>About Hearth</source>
            <translation>Über Hearth</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Version, and the licences of what it is made with</source>
            <translation>Version und Lizenzen dessen, woraus es gemacht ist</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>the one used last</source>
            <translation>das zuletzt benutzte</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>As the system</source>
            <translation>Wie das System</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Light</source>
            <translation>Hell</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Dark</source>
            <translation>Dunkel</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Enter</source>
            <translation>Eingabe</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Ctrl+Enter</source>
            <translation>Strg+Eingabe</translation>
        </message>
        <message>
            <location filename="app/pages/settings/folders.py" />
            <source>Add folder…</source>
            <translation>Ordner hinzufügen…</translation>
        </message>
        <message>
            <location filename="app/pages/settings/folders.py" />
            <source>Remove {folder}</source>
            <translation>{folder} entfernen</translation>
        </message>
        <message>
            <location filename="app/pages/settings/folders.py" />
            <source>A folder with models</source>
            <translation>Ein Ordner mit Modellen</translation>
        </message>
        <message>
            <location filename="app/pages/settings/page.py" />
            <source>{verb}: {title}</source>
            <translation>{verb}: {title}</translation>
        </message>
        <message>
            <location filename="app/pages/settings/page.py" />
            <source>from the next start</source>
            <translation>ab dem nächsten Start</translation>
        </message>
        <message>
            <location filename="app/pages/text/about_page.py" />
            <source>Hearth {version}</source>
            <translation>Hearth {version}</translation>
        </message>
        <message>
            <location filename="app/pages/text/about_page.py" />
            <source>A good assistant on your own computer. Apache License 2.0; parts of others below.</source>
            <translation>Ein guter Assistent auf deinem eigenen Rechner. Apache-Lizenz 2.0; Teile anderer siehe unten.</translation>
        </message>
        <message>
            <location filename="app/pages/text/about_page.py" />
            <source>Licences</source>
            <translation>Lizenzen</translation>
        </message>
        <message>
            <location filename="app/pages/text/log_page.py" />
            <source>Whose log</source>
            <translation>Wessen Protokoll</translation>
        </message>
        <message>
            <location filename="app/pages/text/log_page.py" />
            <source>All</source>
            <translation>Alles</translation>
        </message>
        <message>
            <location filename="app/pages/text/log_page.py" />
            <source>Warnings</source>
            <translation>Warnungen</translation>
        </message>
        <message>
            <location filename="app/pages/text/log_page.py" />
            <source>Errors</source>
            <translation>Fehler</translation>
        </message>
        <message>
            <location filename="app/pages/text/log_page.py" />
            <source>Least level</source>
            <translation>Mindeststufe</translation>
        </message>
        <message>
            <location filename="app/pages/text/log_page.py" />
            <source>Filter the log</source>
            <translation>Protokoll filtern</translation>
        </message>
        <message>
            <location filename="app/pages/text/log_page.py" />
            <source>Read again</source>
            <translation>Neu lesen</translation>
        </message>
        <message>
            <location filename="app/pages/text/log_page.py" />
            <source>{shown} of {all} lines</source>
            <translation>{shown} von {all} Zeilen</translation>
        </message>
        <message>
            <location filename="app/pages/text/log_page.py" />
            <source>Window</source>
            <translation>Fenster</translation>
        </message>
        <message>
            <location filename="app/pages/text/log_page.py" />
            <source>Engine</source>
            <translation>Engine</translation>
        </message>
        <message>
            <location filename="app/pages/text/report_dialog.py" />
            <source>Saved</source>
            <translation>Gespeichert</translation>
        </message>
        <message>
            <location filename="app/pages/text/report_dialog.py" />
            <source>Report</source>
            <translation>Bericht</translation>
        </message>
        <message>
            <location filename="app/pages/text/report_dialog.py" />
            <source>Nothing is sent. Take out what you do not want to show, and copy it.</source>
            <translation>Nichts wird gesendet. Nimm heraus, was du nicht zeigen willst, und kopiere ihn.</translation>
        </message>
        <message>
            <location filename="app/pages/text/report_dialog.py" />
            <source>Save the report</source>
            <translation>Bericht speichern</translation>
        </message>
        <message>
            <location filename="app/pages/text/report_dialog.py" />
            <source>Not saved: {why}</source>
            <translation>Nicht gespeichert: {why}</translation>
        </message>
        <message>
            <location filename="app/pages/text/report_dialog.py" />
            <source>Save…</source>
            <translation>Speichern…</translation>
        </message>
        <message>
            <location filename="app/pages/text/report_page.py" />
            <source>This computer</source>
            <translation>Dieser Rechner</translation>
        </message>
        <message>
            <location filename="app/pages/text/report_page.py" />
            <source>Your name and home folder are taken out.</source>
            <translation>Dein Name und dein persönlicher Ordner sind herausgenommen.</translation>
        </message>
        <message>
            <location filename="app/pages/text/report_page.py" />
            <source>Looking…</source>
            <translation>Sieht nach…</translation>
        </message>
        <message>
            <location filename="app/pages/trash_page.py" />
            <source>Chats stay here for {days} days and are then deleted for good.</source>
            <translation>Chats bleiben {days} Tage hier und werden dann endgültig gelöscht.</translation>
        </message>
        <message>
            <location filename="app/pages/trash_page.py" />
            <source>Delete {title} for good</source>
            <translation>{title} endgültig löschen</translation>
        </message>
        <message>
            <location filename="app/pages/trash_page.py" />
            <source>until {day}</source>
            <translation>bis {day}</translation>
        </message>
        <message>
            <location filename="app/pages/trash_page.py" />
            <source>Empty the trash</source>
            <translation>Papierkorb leeren</translation>
        </message>
        <message>
            <location filename="app/pages/trash_page.py" />
            <source>Deletes all of them for good</source>
            <translation>Löscht alle endgültig</translation>
        </message>
        <message>
            <location filename="app/pages/trash_page.py" />
            <source>Trash</source>
            <translation>Papierkorb</translation>
        </message>
        <message>
            <location filename="app/pages/trash_page.py" />
            <source>Restore</source>
            <translation>Wiederherstellen</translation>
        </message>
        <message>
            <location filename="app/pages/trash_page.py" />
            <source>Restore {title}</source>
            <translation>{title} wiederherstellen</translation>
        </message>
        <message>
            <location filename="app/pages/trash_page.py" />
            <source>Nothing is in the trash.</source>
            <translation>Der Papierkorb ist leer.</translation>
        </message>
        <message>
            <location filename="app/panels/chat_list.py" />
            <source>Answering</source>
            <translation>Antwortet</translation>
        </message>
        <message>
            <location filename="app/panels/chat_list.py" />
            <source>Titles</source>
            <translation>Titel</translation>
        </message>
        <message>
            <location filename="app/panels/chat_list.py" />
            <source>Nothing found</source>
            <translation>Nichts gefunden</translation>
        </message>
        <message>
            <location filename="app/panels/chat_search.py" />
            <source>Search</source>
            <translation>Suchen</translation>
        </message>
        <message>
            <location filename="app/panels/chat_search.py" />
            <source>Search in titles and texts (Ctrl+K)</source>
            <translation>In Titeln und Texten suchen (Strg+K)</translation>
        </message>
        <message>
            <location filename="app/panels/dates.py" />
            <source>Today</source>
            <translation>Heute</translation>
        </message>
        <message>
            <location filename="app/panels/dates.py" />
            <source>Yesterday</source>
            <translation>Gestern</translation>
        </message>
        <message>
            <location filename="app/panels/dates.py" />
            <source>Previous 7 days</source>
            <translation>Letzte 7 Tage</translation>
        </message>
        <message>
            <location filename="app/panels/dates.py" />
            <source>Pinned</source>
            <translation>Angeheftet</translation>
        </message>
        <message>
            <location filename="app/panels/modelbar.py" />
            <source>engine starting</source>
            <translation>Engine startet</translation>
        </message>
        <message>
            <location filename="app/panels/modelbar.py" />
            <source>loading</source>
            <translation>lädt</translation>
        </message>
        <message>
            <location filename="app/panels/modelbar.py" />
            <source>not loaded</source>
            <translation>nicht geladen</translation>
        </message>
        <message>
            <location filename="app/panels/modelbar.py" />
            <source>{used} of {limit}</source>
            <translation>{used} von {limit}</translation>
        </message>
        <message>
            <location filename="app/panels/modelbar.py" />
            <source>Give the memory back</source>
            <translation>Speicher zurückgeben</translation>
        </message>
        <message>
            <location filename="app/panels/modelbar.py" />
            <source>Options of this chat (Ctrl+Alt+P)</source>
            <translation>Optionen dieses Chats (Strg+Alt+P)</translation>
        </message>
        <message>
            <location filename="app/panels/modelbar.py" />
            <source>Loading the model</source>
            <translation>Lädt das Modell</translation>
        </message>
        <message>
            <location filename="app/panels/modelbar.py" />
            <source>Context in use</source>
            <translation>Benutzter Kontext</translation>
        </message>
        <message>
            <location filename="app/panels/modelbar.py" />
            <source>No model</source>
            <translation>Kein Modell</translation>
        </message>
        <message>
            <location filename="app/panels/modelbar.py" />
            <source>loading {share} %</source>
            <translation>lädt {share} %</translation>
        </message>
        <message>
            <location filename="app/panels/models/name_button.py" />
            <source>Choose a model (Ctrl+L)</source>
            <translation>Modell wählen (Strg+L)</translation>
        </message>
        <message>
            <location filename="app/panels/models/picker.py" />
            <source>{name} · {size} GB</source>
            <translation>{name} · {size} GB</translation>
        </message>
        <message>
            <location filename="app/panels/models/picker.py" />
            <source>{name} · not there now</source>
            <translation>{name} · gerade nicht da</translation>
        </message>
        <message>
            <location filename="app/panels/models/picker.py" />
            <source>● {name} · {size} GB · loaded</source>
            <translation>● {name} · {size} GB · geladen</translation>
        </message>
        <message>
            <location filename="app/panels/models/picker.py" />
            <source>Models on this computer</source>
            <translation>Modelle auf diesem Rechner</translation>
        </message>
        <message>
            <location filename="app/panels/models/picker.py" />
            <source>Search models</source>
            <translation>Modelle durchsuchen</translation>
        </message>
        <message>
            <location filename="app/panels/sidebar.py" />
            <source>Hide the sidebar (Ctrl+B)</source>
            <translation>Seitenleiste ausblenden (Strg+B)</translation>
        </message>
        <message>
            <location filename="app/panels/sidebar.py" />
            <source>Unpin</source>
            <translation>Lösen</translation>
        </message>
        <message>
            <location filename="app/panels/sidebar.py" />
            <source>Pin</source>
            <translation>Anheften</translation>
        </message>
        <message>
            <location filename="app/panels/sidebar.py" />
            <source>Delete chat</source>
            <translation>Chat löschen</translation>
        </message>
        <message>
            <location filename="app/panels/sidebar.py" />
            <source>Rename</source>
            <translation>Umbenennen</translation>
        </message>
        <message>
            <location filename="app/widgets/filter_field.py" />
            <source>Filter</source>
            <translation>Filtern</translation>
        </message>
        <message>
            <location filename="app/widgets/message_field.py" />
            <source>Message</source>
            <translation>Nachricht</translation>
        </message>
        <message>
            <location filename="app/widgets/send_button.py" />
            <source>Send (Enter)</source>
            <translation>Senden (Eingabe)</translation>
        </message>
        <message>
            <location filename="app/widgets/send_button.py" />
            <source>Stop the reply (Esc)</source>
            <translation>Antwort anhalten (Esc)</translation>
        </message>
        <message>
            <location filename="app/widgets/send_button.py" />
            <source>Send (Ctrl+Enter)</source>
            <translation>Senden (Strg+Eingabe)</translation>
        </message>
    </context>
</TS>
